/// The NAL units of an H.264 sample, each preceded by its length (ISO/IEC 14496-15 §5.3.4.2).
struct AVCUnits {
    /// NAL unit types (ITU-T H.264 table 7-1).
    enum Kind {
        static let idr: UInt8 = 5
        static let supplementalInformation: UInt8 = 6
        /// Parameter sets, including their extension and those of scalable and multiview streams.
        static let parameterSets: Set<UInt8> = [7, 8, 13, 15]
    }

    /// Supplemental information that players need: buffering periods, picture timing, recovery points (ITU-T H.264 Annex D).
    private static let keptMessages: Set<Int> = [0, 1, 6]

    /// The size of a length in bytes: 1, 2 or 4.
    let lengthSize: Int

    /// Whether the units fill a sample exactly and include no parameter sets, and a first sample includes an IDR picture.
    func isWhole(_ bytes: UnsafeMutableBufferPointer<UInt8>, isFirst: Bool) -> Bool {
        var hasIDR = false
        var hasSets = false
        let isExact = forEach(bytes) { range in
            let kind = bytes[range.lowerBound] & 31
            if kind == Kind.idr { hasIDR = true }
            if Kind.parameterSets.contains(kind) { hasSets = true }
        }
        return isExact && !hasSets && (hasIDR || !isFirst)
    }

    /// Removes supplemental information that players do not need, such as the place and time that cameras record, in place.
    ///
    /// - Returns: The number of bytes that are left.
    func removeUserData(_ bytes: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var kept = 0
        let isExact = forEach(bytes) { range in
            var unit = range
            if bytes[range.lowerBound] & 31 == Kind.supplementalInformation {
                let filtered = Self.filtered(Array(bytes[range]))
                guard !filtered.isEmpty, filtered.count <= range.count else { return }
                for (index, byte) in filtered.enumerated() { bytes[range.lowerBound + index] = byte }
                unit = range.lowerBound..<range.lowerBound + filtered.count
            }
            for index in 0..<lengthSize {
                bytes[kept + index] = UInt8(truncatingIfNeeded: unit.count >> (8 * (lengthSize - 1 - index)))
            }
            kept += lengthSize
            for index in unit {
                bytes[kept] = bytes[index]
                kept += 1
            }
        }
        return isExact ? kept : bytes.count
    }

    /// Calls `body` with the range of each unit. Returns whether the units filled the sample exactly.
    func forEach(_ bytes: UnsafeMutableBufferPointer<UInt8>, _ body: (Range<Int>) -> Void) -> Bool {
        var position = 0
        while position + lengthSize <= bytes.count {
            let length = bytes[position..<position + lengthSize].reduce(0) { $0 << 8 | Int($1) }
            position += lengthSize
            guard length > 0, length <= bytes.count - position else { return false }
            body(position..<position + length)
            position += length
        }
        return position == bytes.count
    }

    /// Returns a unit with only the messages that are kept; empty if there are none.
    private static func filtered(_ unit: [UInt8]) -> [UInt8] {
        let payload = withoutEmulationPrevention(unit.dropFirst())
        var kept: [UInt8] = []
        var isComplete = true
        var rest = payload[...]
        // A 1 and zeros follow the messages.
        while rest.count > 2 {
            let start = rest
            guard let type = number(&rest), let size = number(&rest), size <= rest.count else { return [] }
            rest = rest.dropFirst(size)
            if keptMessages.contains(type) {
                kept += start.prefix(start.count - rest.count)
            } else {
                isComplete = false
            }
        }
        if isComplete { return unit }
        return kept.isEmpty ? [] : unit.prefix(1) + withEmulationPrevention(kept + [0x80])
    }

    /// Reads a number coded as bytes of 255 and a smaller last byte, which are added (§7.3.2.3.1).
    private static func number(_ bytes: inout ArraySlice<UInt8>) -> Int? {
        var sum = 0
        while let byte = bytes.popFirst() {
            sum += Int(byte)
            if byte < 255 { return sum }
        }
        return nil
    }

    /// Removes each 3 that follows two zeros (§7.4.1).
    private static func withoutEmulationPrevention(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var zeros = 0
        for byte in bytes {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            result.append(byte)
        }
        return result
    }

    private static func withEmulationPrevention(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var zeros = 0
        for byte in bytes {
            if zeros >= 2, byte <= 3 {
                result.append(3)
                zeros = 0
            }
            zeros = byte == 0 ? zeros + 1 : 0
            result.append(byte)
        }
        return result
    }
}
