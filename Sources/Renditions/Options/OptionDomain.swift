internal import Media

/// The values that an option may have, as schemas describe them.
package enum OptionDomain: Sendable, Equatable {
    case whole(ClosedRange<Int>)
    case decimal(ClosedRange<Double>)
    case words([String])
    /// A whole number, or a word in its place.
    case wholeOr(ClosedRange<Int>, word: String)
    /// Six hexadecimal digits.
    case colour
    /// A word, or two numbers from 0 to 1 with a colon between them.
    case wordsOrPoint([String])
}

/// The text form of the values of an option.
struct OptionForm<Value: Sendable>: Sendable {
    let domain: OptionDomain
    /// The valid texts, as the end of a sentence.
    let expectation: String
    /// Nil for a text that is not a valid value.
    let value: @Sendable (String) -> Value?
    /// The canonical text; nil for a value without a text.
    let text: @Sendable (Value) -> String?

    /// The form of an option that may be missing.
    static func optional<Wrapped>(_ form: OptionForm<Wrapped>) -> OptionForm where Value == Wrapped? {
        OptionForm(domain: form.domain, expectation: form.expectation) { text in
            form.value(text).map(Optional.some)
        } text: { value in
            value.flatMap(form.text)
        }
    }
}

extension OptionForm where Value == Int {
    static func whole(_ range: ClosedRange<Int>) -> OptionForm {
        OptionForm(
            domain: .whole(range), expectation: "a whole number from \(range.lowerBound) to \(range.upperBound)",
            value: { text in DecimalText.whole(text).flatMap { range.contains($0) ? $0 : nil } }, text: { String($0) })
    }

    /// - Parameters:
    ///   - range: In the unit of the property.
    ///   - scale: The number of units per 1; a power of ten.
    ///   - expectation: Nil for the usual sentence about numbers.
    static func decimal(_ range: ClosedRange<Int>, by scale: Int, expectation: String? = nil) -> OptionForm {
        let (least, most) = (range.lowerBound, range.upperBound)
        return OptionForm(
            domain: .decimal(Double(least) / Double(scale)...Double(most) / Double(scale)),
            expectation: expectation
                ?? "a number from \(DecimalText.text(least, by: scale)) to \(DecimalText.text(most, by: scale))",
            value: { text in DecimalText.scaled(text, by: scale).flatMap { range.contains($0) ? $0 : nil } },
            text: { DecimalText.text($0, by: scale) })
    }

    /// A time of the source, in hundredths of a second.
    static var seconds: OptionForm { decimal(0...8_640_000, by: 100, expectation: "a number of seconds, at most 86400") }
}

extension OptionForm where Value: OptionWord {
    static func words(_ words: [Value] = Array(Value.allCases)) -> OptionForm {
        let names = words.map(\.name)
        let last = names.count > 1 ? " or \(names[names.count - 1])" : ""
        return OptionForm(
            domain: .words(names),
            expectation: (names.count > 1 ? names.dropLast() : names[...]).joined(separator: ", ") + last,
            value: { text in words.first { $0.name == text } }, text: { $0.name })
    }
}

extension OptionForm where Value == RGB {
    static var colour: OptionForm {
        OptionForm(
            domain: .colour, expectation: "a colour of six hexadecimal digits", value: { RGB(hex: $0) }, text: { $0.hex })
    }
}

extension OptionForm where Value == Gravity {
    static var gravity: OptionForm {
        OptionForm(
            domain: .wordsOrPoint(Gravity.names.map(\.name)),
            expectation: "center, a side such as top, a corner such as top-left, or x:y with numbers from 0 to 1",
            value: { Gravity(name: $0) }, text: { $0.name })
    }
}

extension OptionForm where Value == PosterFrame {
    static var frame: OptionForm {
        let auto = "auto"
        return OptionForm(
            domain: .wholeOr(0...999_999_999, word: auto), expectation: "a whole number from 0 on, or \(auto)",
            value: { text in text == auto ? .auto : DecimalText.whole(text).map(PosterFrame.number) },
            text: { $0.number.map { String($0) } ?? auto })
    }
}
