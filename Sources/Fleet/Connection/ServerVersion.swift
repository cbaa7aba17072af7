/// What a server says about itself in its reply to `HELLO`.
struct ServerVersion: CustomStringConvertible {
    /// `redis` or `valkey`.
    private let name: String
    private let version: String

    /// The oldest major version with all commands that nodes use.
    private static let leastMajor = 7

    /// - Parameter reply: Names and values in turn.
    init(_ reply: RedisValue) throws(RedisError) {
        let parts = try reply.elements()
        var values: [String: String] = [:]
        for index in stride(from: 0, to: parts.count - 1, by: 2) {
            if case .bytes(let name) = parts[index], case .bytes(let value) = parts[index + 1] {
                values[String(decoding: name, as: UTF8.self)] = String(decoding: value.prefix(32), as: UTF8.self)
            }
        }
        guard let version = values["version"] else { throw .nonsense("a greeting without a version") }
        self.version = version
        name = values["server"] ?? "redis"
    }

    var description: String { "\(name) \(version)" }

    /// Itself; throws for a version that is too old.
    func checked() throws(RedisError) -> ServerVersion {
        guard let major = version.split(separator: ".").first.flatMap({ Int($0) }), major >= Self.leastMajor else {
            throw Self.tooOld(description)
        }
        return self
    }

    /// - Parameter server: Nil for one that does not know `HELLO`.
    static func tooOld(_ server: String?) -> RedisError {
        .unavailable("the server is \(server ?? "older than redis 6.0"); version 7.0 or newer is required")
    }
}
