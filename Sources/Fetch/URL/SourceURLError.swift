/// Why a text is not the URL of a source. The description is fit for the client who sent the text.
package enum SourceURLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Longer than `limit` bytes, as it was given or in its canonical form.
    case tooLong(limit: Int)
    /// A control character, a space or a backslash.
    case badCharacter
    /// Neither `http://` nor `https://`, each with exactly two slashes.
    case unsupportedScheme
    /// A user name or password, even an empty one.
    case credentials
    /// No host, or one that different readers may understand differently.
    case badHost
    /// Not a number from 1 to 65535.
    case badPort
    /// Whatever else the parser refuses.
    case malformed

    package var description: String {
        switch self {
        case .tooLong(let limit): "The source URL is longer than \(limit) bytes."
        case .badCharacter: "The source URL holds a control character, a space or a backslash."
        case .unsupportedScheme: "The source URL must begin with http:// or https://."
        case .credentials: "The source URL must not hold a user name or password."
        case .badHost: "The host of the source URL is missing or not in a plain form."
        case .badPort: "The port of the source URL is not a number from 1 to 65535."
        case .malformed: "The source URL cannot be understood."
        }
    }
}
