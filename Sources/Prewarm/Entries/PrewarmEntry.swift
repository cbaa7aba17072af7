package import Fetch
internal import Foundation
package import Renditions

/// One rendition that is to be in the cache before anybody asks: as it was written, so that what is wrong with it can be
/// told when its turn comes.
package struct PrewarmEntry: Sendable, Hashable {
    package let url: String
    /// A format of ``Rendition/Format``.
    package let format: String
    /// Options as in the path form.
    package let options: [String: String]

    package init(url: String, format: String = "mp4", options: [String: String] = [:]) {
        self.url = url
        self.format = format
        self.options = options
    }

    /// A rendition and the source to make it from.
    package typealias Target = (rendition: Rendition, url: SourceURL)

    /// Reads the entry.
    ///
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` or ``RenditionError/invalidSourceURL(_:)``.
    package func target() throws(RenditionError) -> Target {
        guard let format = Rendition.Format(rawValue: format) else {
            throw .invalidOption(name: "format", reason: "is not one that can be made")
        }
        var rendition = Rendition(format: format)
        for option in options.sorted(by: { $0.key < $1.key }) { try rendition.set(option.key, to: option.value) }
        try rendition.check()
        do throws(SourceURLError) {
            return (rendition, try SourceURL(url))
        } catch {
            throw .invalidSourceURL(error)
        }
    }

    /// The same for entries that mean the same rendition of the same source.
    var identity: String {
        do throws(RenditionError) {
            let (rendition, url) = try target()
            return "\(rendition.canonicalText) \(url.canonical)"
        } catch {
            return "\(format),\(options.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ",")) \(url)"
        }
    }
}

/// An object in the body of `POST /prewarm` (docs/api.md): `{"url":…, "format":"mp4", …options}`.
extension PrewarmEntry: Codable {
    /// A name that is not known beforehand.
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Name.self)
        var options: [String: String] = [:]
        for name in fields.allKeys where name.stringValue != "url" && name.stringValue != "format" {
            options[name.stringValue] = try Self.text(fields, name)
        }
        self.init(
            url: try fields.decode(String.self, forKey: Name(stringValue: "url")),
            format: try fields.decodeIfPresent(String.self, forKey: Name(stringValue: "format")) ?? "mp4", options: options)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Name.self)
        try fields.encode(url, forKey: Name(stringValue: "url"))
        try fields.encode(format, forKey: Name(stringValue: "format"))
        for (name, value) in options { try fields.encode(value, forKey: Name(stringValue: name)) }
    }

    /// An option's value, which JSON may have as a string or as a number.
    private static func text(_ fields: KeyedDecodingContainer<Name>, _ name: Name) throws -> String {
        if let text = try? fields.decode(String.self, forKey: name) { return text }
        if let whole = try? fields.decode(Int.self, forKey: name) { return String(whole) }
        return String(try fields.decode(Double.self, forKey: name))
    }
}
