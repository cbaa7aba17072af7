/// Minifies the program's scripts, so that pages of other sites load little.
///
/// It supports only the part of the language that these scripts use: statements end with semicolons, strings have double quotes
/// and do not contain the patterns that are replaced, and regular expressions contain no quotes.
enum ScriptMinifier {
    /// Returns a script without indentation, comment lines, and most spaces between tokens.
    static func condensed(_ script: [UInt8]) -> String {
        let lines = script.split(separator: UInt8(ascii: "\n")).map { $0.drop { $0 == UInt8(ascii: " ") } }
        let code = lines.filter { line in !["//", "/*", "*"].contains { line.starts(with: $0.utf8) } }
        var text = code.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
        let operators = [
            "=", "=>", "&&", "||", "??", "===", "!==", "<", ">", "<=", ">=", "+", "-", "*", "&", "||=", "+=", "?", ":",
        ]
        let patterns =
            operators.map { (" \($0) ", $0) } + ["{", "}", ";", ",", "(", ">"].map { ($0 + "\n", $0) }
            + ["}", ".", "?", ":", ")"].map { ("\n" + $0, $0) }
            + [
                (", ", ","), ("{ ", "{"), ("} ", "}"), (" {", "{"), (" }", "}"), (" (", "("), (") ", ")"), (" [", "["),
                (";}", "}"),
            ]
        for (pattern, replacement) in patterns { text = text.replacing(pattern, with: replacement) }
        return text
    }

    /// Returns a condensed script with short names for its own constants, variables, functions and parameters, except those that are
    /// also names of properties, and with shorter words of the language.
    static func shortened(_ script: String) -> [UInt8] {
        let text = Array(script.utf8)
        let words = words(of: text)
        var (declared, fixed): (Set<ArraySlice<UInt8>>, Set<ArraySlice<UInt8>>) = ([], [])
        var counts: [ArraySlice<UInt8>: Int] = [:]
        var previous: Range<Int>?
        for range in words {
            let word = text[range]
            counts[word, default: 0] += 1
            let before = range.lowerBound > 0 ? text[range.lowerBound - 1] : 0
            let after = range.upperBound < text.endIndex ? text[range.upperBound] : 0
            let isSpread = text[..<range.lowerBound].suffix(3).elementsEqual("...".utf8)
            let isAlternative = text[..<range.lowerBound].suffix(2).elementsEqual("||".utf8)
            // A property, or a part of a regular expression.
            if ".^|/\\".utf8.contains(before), !isSpread, !isAlternative { fixed.insert(word) }
            if after == UInt8(ascii: ":"), before != UInt8(ascii: "?") { fixed.insert(word) }
            if "{,".utf8.contains(before), ",}".utf8.contains(after) { fixed.insert(word) }
            let end = text[range.upperBound...].firstIndex { !isWordByte($0) && $0 != UInt8(ascii: ",") } ?? text.endIndex
            let isParameter = "(,".utf8.contains(before) && [")=>", "){"].contains { text[end...].starts(with: $0.utf8) }
            if isParameter, range.count > 2 { declared.insert(word) }
            if let previous, previous.upperBound == range.lowerBound - 1, range.count > 2,
                ["const", "let", "function"].contains(where: { text[previous].elementsEqual($0.utf8) })
            {
                declared.insert(word)
            }
            previous = range
        }
        let long = declared.subtracting(fixed).sorted {
            (counts[$1] ?? 0, String(decoding: $0, as: UTF8.self)) < (counts[$0] ?? 0, String(decoding: $1, as: UTF8.self))
        }
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        let short = (letters.map { [$0] } + letters.flatMap { first in letters.map { [first, $0] } }).filter {
            counts[$0[...]] == nil
        }
        var names = Dictionary(uniqueKeysWithValues: zip(long, short))
        for (word, shorter) in [("const", "let"), ("true", "!0"), ("false", "!1")] {
            names[Array(word.utf8)[...]] = Array(shorter.utf8)
        }
        var output: [UInt8] = []
        var position = 0
        for range in words {
            var gap = text[position..<range.lowerBound]
            // The space after a property's name and colon.
            if gap.starts(with: ": ".utf8) { gap.remove(at: gap.startIndex + 1) }
            output += gap
            output += names[text[range]] ?? Array(text[range])
            position = range.upperBound
        }
        return output + text[position...]
    }

    /// Returns the ranges of the words in the code, excluding strings and the text of templates.
    private static func words(of text: [UInt8]) -> [Range<Int>] {
        var words: [Range<Int>] = []
        var index = 0
        var depth = 0
        // For each open template, the depth of the braces around its expression; nil within its text.
        var templates: [Int?] = []
        while index < text.endIndex {
            let byte = text[index]
            if let template = templates.last, template == nil {
                if byte == UInt8(ascii: "`") { templates.removeLast() }
                if text[index...].starts(with: "${".utf8) {
                    templates[templates.endIndex - 1] = depth
                    index += 1
                }
                index += 1
                continue
            }
            switch byte {
            case UInt8(ascii: "\""):
                index = text[(index + 1)...].firstIndex(of: byte) ?? index
            case UInt8(ascii: "`"):
                templates.append(nil)
            case UInt8(ascii: "{"):
                depth += 1
            case UInt8(ascii: "}"):
                if templates.last == .some(depth) { templates[templates.endIndex - 1] = nil } else { depth -= 1 }
            case _ where isWordByte(byte):
                let end = text[index...].firstIndex { !isWordByte($0) } ?? text.endIndex
                words.append(index..<end)
                index = end - 1
            default:
                break
            }
            index += 1
        }
        return words
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "$"): true
        default: false
        }
    }
}
