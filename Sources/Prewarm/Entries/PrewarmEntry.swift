package import Fetch
package import Renditions

/// One rendition to bring into the cache, as the list spells it.
///
/// An entry is parsed only when it is processed: an error fails that entry, not the list.
package struct PrewarmEntry: Sendable, Hashable {
    package let url: String
    /// The name of a ``Rendition/Format``.
    package var format = "mp4"
    /// Options by name, with the values of the path form.
    package var options: [String: String] = [:]

    /// A rendition and its source.
    package typealias Target = (rendition: Rendition, url: SourceURL)

    /// Parses format, options and URL.
    ///
    /// - Parameters:
    ///   - defaults: The defaults for options that the entry omits.
    ///   - sources: The rules with the mounts, whose files and objects the entry may name; nil for none.
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` or ``RenditionError/invalidSourceURL(_:)``.
    package func target(
        _ defaults: RenditionDefaults = RenditionDefaults(), _ sources: SourceRules? = nil
    ) throws(RenditionError) -> Target {
        let rendition = try rendition(defaults)
        do throws(SourceURLError) {
            let source = if let sources { try sources.source(url) } else { try SourceURL(url) }
            return (rendition, source)
        } catch {
            throw .invalidSourceURL(error)
        }
    }

    /// Parses format and options. See ``target(_:_:)``.
    package func rendition(_ defaults: RenditionDefaults) throws(RenditionError) -> Rendition {
        guard let format = Rendition.Format(rawValue: format) else {
            throw .invalidOption(name: "format", reason: "is not the name of a format")
        }
        guard format.output != nil || format == .original else {
            throw .invalidOption(
                name: "format",
                reason: "is “\(format.rawValue)”, which is not stored; give another one, such as mp4 or json")
        }
        let sorted = options.sorted { $0.key < $1.key }.map { RenditionPresets.Option(name: $0.key, value: $0.value) }
        return try defaults.rendition(format, of: sorted)
    }

    /// A text that is equal for entries with the same rendition of the same source.
    ///
    /// - Parameter defaults: The defaults for options that the entry omits. Nil if they are unknown: options then are equal only if
    ///   their texts are.
    func identity(_ defaults: RenditionDefaults?) -> String {
        do throws(RenditionError) {
            let (rendition, url) = try target(defaults ?? RenditionDefaults())
            guard defaults != nil else { return "\(spelling) \(url.canonical)" }
            return "\(rendition.canonicalText) \(url.canonical)"
        } catch {
            return "\(spelling) \(url)"
        }
    }

    private var spelling: String {
        "\(format),\(options.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ","))"
    }
}

/// An object in the body of `POST /prewarm` (docs/api.md): `{"url":…, "format":"mp4", …options}`.
extension PrewarmEntry: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: EntryKey.self)
        try fields.encode(url, forKey: EntryKey(stringValue: "url"))
        try fields.encode(format, forKey: EntryKey(stringValue: "format"))
        for (name, value) in options { try fields.encode(value, forKey: EntryKey(stringValue: name)) }
    }
}

/// A key of any name: options are keys of the object.
private struct EntryKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// An entry as an object of a list spells it. The object may omit the format.
struct ListedEntry: Decodable {
    private let url: String
    /// Nil if the object has none.
    private let format: String?
    private let options: [String: String]

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: EntryKey.self)
        var options: [String: String] = [:]
        for name in fields.allKeys where name.stringValue != "url" && name.stringValue != "format" {
            options[name.stringValue] = try Self.text(fields, name)
        }
        url = try fields.decode(String.self, forKey: EntryKey(stringValue: "url"))
        format = try fields.decodeIfPresent(String.self, forKey: EntryKey(stringValue: "format"))
        self.options = options
    }

    /// Returns the entry, with the format and the options that it omits taken from a template.
    func entry(_ template: PrewarmEntry) -> PrewarmEntry {
        PrewarmEntry(
            url: url, format: format ?? template.format, options: template.options.merging(options) { _, own in own })
    }

    /// Reads the value of an option, a string or a number.
    private static func text(_ fields: KeyedDecodingContainer<EntryKey>, _ name: EntryKey) throws -> String {
        if let text = try? fields.decode(String.self, forKey: name) { return text }
        if let whole = try? fields.decode(Int.self, forKey: name) { return String(whole) }
        return String(try fields.decode(Double.self, forKey: name))
    }
}
