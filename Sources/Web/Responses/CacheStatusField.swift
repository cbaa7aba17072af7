internal import Renditions
internal import Store

/// Values of `Cache-Status` (RFC 9211).
enum CacheStatusField {
    /// The value for a result. It has at most one `detail`: a truncated source, or else the provenance.
    static func value(_ provenance: RenditionResult.Provenance, isIncomplete: Bool = false) -> String {
        let (status, detail): (String, String?) =
            switch provenance {
            case .hit: ("gifreel; hit", nil)
            // Only a negative integer means stale (section 2.5), so an age of 0 counts as one second.
            case .stale(let age): ("gifreel; hit; ttl=\(-max(age, 1))", nil)
            case .stored: ("gifreel; fwd=miss; stored", nil)
            case .renewed: ("gifreel; fwd=stale; fwd-status=304; stored", nil)
            case .unstored(let reason): ("gifreel; fwd=miss", reason.token)
            case .collapsed: ("gifreel; fwd=miss; collapsed", nil)
            case .shared: ("gifreel; fwd=miss; stored", "shared")
            case .followed: ("gifreel; fwd=miss; collapsed", "shared")
            }
        let shown = isIncomplete ? "incomplete-source" : detail
        return shown.map { "\(status); detail=\($0)" } ?? status
    }

    /// The value for a source that is passed on.
    static let followed = "gifreel; fwd=miss; detail=original"
}

extension UnstoredReason {
    /// The reason as a token for `Cache-Status` (RFC 9211 section 2.8).
    var token: String {
        switch self {
        case .unwanted: "origin-forbids"
        case .purged: "purged"
        case .tooLarge: "too-large"
        case .diskFull: "disk-full"
        case .lowSpace: "low-space"
        case .readOnly: "read-only"
        case .directoryLost: "directory-lost"
        case .unavailable: "busy"
        case .failed: "disk-error"
        }
    }
}
