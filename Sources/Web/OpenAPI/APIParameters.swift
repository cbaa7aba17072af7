internal import Renditions

enum APIParameters {
    /// The options of a format, with those that concern access, webhooks and answers without a rendition.
    ///
    /// - Parameter hasChoices: Whether the request may choose the answer in place of a rendition.
    static func options(
        of format: Rendition.Format, _ presets: RenditionPresets, hasChoices: Bool = true
    ) -> [APIOperation.Parameter] {
        let options = RenditionOption.allCases.filter { $0 != .preset && $0.applies(to: format) }
        return options.map { parameter($0, of: format) }
            + preset(of: format, presets, hasOptions: options.contains { $0 != .facts })
            + (hasChoices ? choices(of: format) : []) + [callback] + access
    }

    private static func parameter(_ option: RenditionOption, of format: Rendition.Format) -> APIOperation.Parameter {
        let domain = option.domain(of: format)
        let schema =
            option == .width
            ? ["oneOf": [schema(domain), ["type": "string", "enum": [.text(OptionReader.automatic)]]]]
            : schema(domain, default: option.defaultText(of: format))
        return .query(option.rawValue, schema, "See docs/api.md.")
    }

    /// The schema of values.
    ///
    /// - Parameter text: The default.
    static func schema(_ domain: OptionDomain, default text: String? = nil) -> JSONValue {
        switch domain {
        case .whole(let range):
            object(
                ["type": "integer", "minimum": .whole(range.lowerBound), "maximum": .whole(range.upperBound)],
                default: text.flatMap { Int($0) }.map(JSONValue.whole))
        case .decimal(let range):
            object(
                ["type": "number", "minimum": .number(range.lowerBound), "maximum": .number(range.upperBound)],
                default: text.flatMap { Double($0) }.map(JSONValue.number))
        case .words(let words):
            object(["type": "string", "enum": .list(words.map(JSONValue.text))], default: text.map(JSONValue.text))
        case .wholeOr(let range, let word):
            [
                "oneOf": [
                    ["type": "integer", "minimum": .whole(range.lowerBound), "maximum": .whole(range.upperBound)],
                    ["type": "string", "enum": [.text(word)]],
                ]
            ]
        case .wordsOrPoint(let words):
            object(
                [
                    "type": "string",
                    "pattern": .text(
                        "^(\(words.joined(separator: "|"))|(0(\\.[0-9]+)?|1(\\.0+)?)(:(0(\\.[0-9]+)?|1(\\.0+)?)))$"),
                ], default: text.map(JSONValue.text))
        case .colour: object(["type": "string", "pattern": "^[0-9a-fA-F]{6}$"], default: text.map(JSONValue.text))
        }
    }

    private static func object(_ members: [String: JSONValue], default value: JSONValue?) -> JSONValue {
        var members = members
        members["default"] = value
        return .object(members)
    }

    private static func preset(
        of format: Rendition.Format, _ presets: RenditionPresets, hasOptions: Bool
    ) -> [APIOperation.Parameter] {
        let names = presets.names.filter { name in
            presets.defines(name) ? hasOptions : RenditionOption.preset.applies(to: format)
        }
        if names.isEmpty { return [] }
        return [.query("preset", schema(.words(names)), "A name that stands for options.")]
    }

    private static func choices(of format: Rendition.Format) -> [APIOperation.Parameter] {
        let choices = Mount.OnMiss.choices(for: format)
        if choices.isEmpty { return [] }
        let onMiss = APIOperation.Parameter.query(
            "on_miss", schema(.words(choices.map(\.rawValue))), "The answer while the rendition is not stored.")
        let larger = OptionReader.OnLarger.choices(for: format)
        guard format == .html else {
            let description = "The answer if the rendition is larger than its source."
            return [onMiss] + (larger.isEmpty ? [] : [.query("on_larger", schema(.words(larger.map(\.rawValue))), description)])
        }
        return [
            onMiss,
            .query(
                OptionReader.title, ["type": "string", "maxLength": 500], "The text that describes the animation."),
            .query("on_error", schema(.words(Mount.OnError.allCases.map(\.rawValue))), "The answer if there can be no video."),
        ]
    }

    private static let callback = APIOperation.Parameter.query(
        "callback", ["type": "string", "format": "uri"],
        "The URL that gets the final status; only with Prefer: respond-async, and if webhooks.allow permits it.")

    static let access: [APIOperation.Parameter] = [
        .query(
            "expires", ["type": "integer", "minimum": 0, "maximum": 999_999_999_999_999],
            "When the signature expires, in Unix seconds."),
        .query("sig", ["type": "string"], "The signature, see docs/access.md."),
    ]
}
