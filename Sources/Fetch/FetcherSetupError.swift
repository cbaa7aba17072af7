/// Why no fetcher could be made.
package enum FetcherSetupError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A setting cannot work.
    case configuration(FetchConfigurationError)
    /// This machine lacks something: descriptors, memory, threads.
    case exhausted(FetchError)

    package var description: String {
        switch self {
        case .configuration(let error): error.description
        case .exhausted(let error): error.description
        }
    }
}
