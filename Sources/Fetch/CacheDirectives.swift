/// What an origin says about keeping its answer (RFC 9111 section 5.2).
package struct CacheDirectives: Hashable, Sendable {
    /// `no-store`: not to be kept at all.
    package private(set) var noStore = false
    /// `no-cache`: not to be used again without asking.
    package private(set) var noCache = false
    /// `private`: not for a shared cache.
    package private(set) var isPrivate = false
    /// `s-maxage`, or else `max-age`, in seconds.
    package var maxAge: Int? { sharedMaxAge ?? plainMaxAge }
    /// Seconds for which the answer is fresh from its arrival on: what the origin said, less how old it was already
    /// (RFC 9111 sections 4.2.1, 4.2.3); nil where it did not say.
    package var freshFor: Int? { (maxAge ?? expiry).map { max(0, $0 - age) } }

    private var sharedMaxAge: Int?
    private var plainMaxAge: Int?
    private let expiry: Int?
    private let age: Int

    /// Reads the values of all `Cache-Control` fields, joined by commas. Unknown directives are passed over; of several
    /// ages the smallest counts.
    ///
    /// - Parameters:
    ///   - expiry: Seconds from `Date` to `Expires`, where there is one; it counts only without an age.
    ///   - age: Seconds that the answer had been in caches on the way.
    package init(_ text: String = "", expiry: Int? = nil, age: Int = 0) {
        self.expiry = expiry
        self.age = age
        for item in text.split(separator: ",") {
            let parts = item.split(separator: "=", maxSplits: 1)
            let name = parts.first.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
            let value = parts.count == 2 ? parts[1].filter { $0 != " " && $0 != "\t" && $0 != "\"" } : ""
            switch name {
            case "no-store": noStore = true
            case "no-cache": noCache = true
            case "private": isPrivate = true
            case "max-age": plainMaxAge = Self.smaller(plainMaxAge, value)
            case "s-maxage": sharedMaxAge = Self.smaller(sharedMaxAge, value)
            default: break
            }
        }
    }

    /// RFC 9111 section 1.2.2: what is too large counts as 2³¹; what is no number is as good as stale.
    private static func smaller(_ known: Int?, _ text: some StringProtocol) -> Int {
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let value = isNumber ? min(Int(text) ?? .max, 1 << 31) : 0
        return min(known ?? .max, value)
    }
}
