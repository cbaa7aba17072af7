#if FUZZ
    /// The errors of entries, without those of the layers below.
    package enum RenditionError: Error, Equatable {
        case invalidOption(name: String, reason: String)
        case invalidSourceURL(SourceURLError)
    }
#endif
