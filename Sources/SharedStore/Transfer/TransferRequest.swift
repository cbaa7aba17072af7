internal import Curl
internal import SystemIO

/// One HTTP request, as ``TransferClient`` sends it.
struct TransferRequest: Sendable {
    enum Method: String, Sendable {
        case get = "GET"
        case head = "HEAD"
        case put = "PUT"
        case delete = "DELETE"
    }

    /// The bytes of a PUT.
    enum Body: Sendable {
        case bytes([UInt8])
        /// The first `length` bytes of a file.
        case file(SharedDescriptor, length: Int)

        var length: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .file(_, let length): length
            }
        }
    }

    /// Where the body of a response with the status 200 goes. Other bodies go to memory.
    enum Destination: Sendable {
        case memory
        /// A file, which is emptied first.
        case file(SharedDescriptor)
    }

    var method: Method
    /// An absolute URL, encoded: it is sent as it is.
    var url: String
    /// Header fields as `name: value`.
    var fields: [String] = []
    /// SHA-256 of the body in hexadecimal; nil for an empty body.
    var digest: String?
    /// Nil for a request that is not signed.
    var signer: SignatureV4?
    var body: Body?
    var destination = Destination.memory
    /// The largest body of a response with the status 200, in bytes.
    var maxLength = 0
    /// The time limit of the whole request.
    var timeout: Duration
    var certificateAuthorities: String?
}

/// A complete response.
struct TransferResponse: Sendable {
    var status: Int
    /// Header fields; names in lower case.
    var fields: [String: String]
    /// The body, if it went to memory.
    var body: [UInt8]
    /// The number of bytes of the body.
    var length: Int
    /// SHA-256 of a body that went to a file.
    var digest: [UInt8]?
}
