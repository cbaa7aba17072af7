extension FetchError {
    /// A sentence for the client.
    package var publicDetail: String {
        switch self {
        case .notAllowed(.pattern): "Sources of this host or path may not be fetched."
        case .notAllowed(.address(.address)): "The source has no address that may be connected to."
        case .notAllowed(.address(.itself)): "The source is this service itself."
        case .notAllowed(.address(.port)): "Sources at this port may not be fetched."
        case .notFound: "The source was not found."
        case .gone: "The source is gone."
        case .unreachable: "The source cannot be reached."
        case .timeout(.connect): "Connecting to the source took too long."
        case .timeout: "The source took too long to answer."
        case .tooLarge(let limit, let declared?): "The source has \(declared) bytes; the limit is \(limit) bytes."
        case .tooLarge(let limit, nil): "The source has more than \(limit) bytes, which is the limit."
        case .failed(.status(let status, _)): "The source answered with status \(status)."
        case .failed(.redirect), .failed(.redirectToNowhere): "The source redirects to what cannot be fetched."
        case .failed(.cutShort): "The source's answer broke off."
        case .failed(.tls): "No secure connection to the source could be made."
        case .failed(.protocolViolation): "The source's answer is not valid."
        case .notAGIF(let kind): "The source is \(kind.phrase)."
        case .tooManyRedirects(let limit): "The source redirects more than \(limit) times."
        case .busy: "Too many sources are being fetched."
        case .cancelled, .closed, .exhausted: "The source was not fetched."
        }
    }
}

extension FetchError: CustomStringConvertible {
    /// A line for the log, with the cause.
    package var description: String {
        switch self {
        case .notAllowed(.address(.address(let purpose))): "address not allowed: \(purpose)"
        case .notAllowed(.address(.port(let port))): "port not allowed: \(port)"
        case .unreachable(let cause): "unreachable: \(cause)"
        case .timeout(let phase): "timeout: \(phase.rawValue)"
        case .failed(.redirect(let error)): "bad redirect: \(error)"
        case .failed(.redirectToNowhere): "redirect without a location"
        case .failed(.cutShort(let cause)): "answer broke off: \(cause)"
        case .failed(.tls(let cause)): "TLS: \(cause)"
        case .failed(.protocolViolation(let cause)): "protocol: \(cause)"
        case .exhausted(let cause): "exhausted: \(cause)"
        case .cancelled: "cancelled"
        case .closed: "shut down"
        default: publicDetail
        }
    }
}
