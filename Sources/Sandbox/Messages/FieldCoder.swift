/// A coder that writes fields as words, or reads them back in the same order.
///
/// A payload lists its fields in one function that serves both directions, so the two cannot differ.
struct FieldCoder {
    /// The words written so far, or the words to read.
    private(set) var words: [Int64]
    /// The index of the next word to read; nil if the coder writes.
    private var position: Int?
    /// Whether every word read so far is a valid value of its field.
    private(set) var isValid = true

    init() {
        words = []
    }

    init(reading words: ArraySlice<Int64>) {
        self.words = Array(words)
        position = 0
    }

    /// Writes `word`, or reads the next word.
    private mutating func exchange(_ word: Int64) -> Int64 {
        guard let position else {
            words.append(word)
            return word
        }
        guard position < words.count else {
            isValid = false
            return word
        }
        self.position = position + 1
        return words[position]
    }

    /// Writes or reads an integer.
    mutating func number<Number: FixedWidthInteger>(_ number: inout Number) {
        let word = exchange(Int64(truncatingIfNeeded: number))
        if let read = Number(exactly: word) { number = read } else { isValid = false }
    }

    /// Writes or reads a flag as 0 or 1.
    mutating func flag(_ flag: inout Bool) {
        var number = flag ? 1 : 0
        self.number(&number)
        if number == 0 || number == 1 { flag = number == 1 } else { isValid = false }
    }

    /// Writes or reads a case of an enumeration.
    mutating func value<Value: RawRepresentable>(_ value: inout Value) where Value.RawValue: FixedWidthInteger {
        var raw = value.rawValue
        number(&raw)
        if let read = Value(rawValue: raw) { value = read } else { isValid = false }
    }

    /// Writes or reads a number or nil, as two words.
    mutating func optionalNumber<Number: FixedWidthInteger>(_ number: inout Number?) {
        var isPresent = number != nil
        var value = number ?? 0
        flag(&isPresent)
        self.number(&value)
        number = isPresent ? value : nil
    }

    /// Writes or reads a case of an enumeration or nil, as two words.
    mutating func optionalValue<Value: RawRepresentable>(_ value: inout Value?) where Value.RawValue: FixedWidthInteger {
        var raw = value?.rawValue
        optionalNumber(&raw)
        guard let raw else { return value = nil }
        if let read = Value(rawValue: raw) { value = read } else { isValid = false }
    }
}
