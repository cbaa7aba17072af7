/// H.264 byte streams with start codes (ITU-T H.264 Annex B).
enum AnnexB {
    /// Supplemental enhancement information (ITU-T H.264 table 7-1).
    private static let supplementalInformation: UInt8 = 6

    /// Removes all SEI units from an access unit in place. Returns the number of bytes that are left.
    static func removeSupplementalInformation(_ bytes: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var kept = 0
        var next = startCode(in: bytes, from: 0)
        while let start = next {
            let following = startCode(in: bytes, from: start.payload)
            let end = following?.position ?? bytes.count
            let isDropped = start.payload < end && bytes[start.payload] & 0x1f == supplementalInformation
            if !isDropped {
                for index in start.position..<end {
                    bytes[kept] = bytes[index]
                    kept += 1
                }
            }
            next = following
        }
        return kept == 0 ? bytes.count : kept
    }

    /// A sequence parameter set (ITU-T H.264 table 7-1).
    private static let sequenceParameters: UInt8 = 7

    /// The tick of ``H264Settings``, a hundredth of a second, as x264 writes it: `num_units_in_tick` and `time_scale` of twice the
    /// rate (ITU-T H.264 §E.2.1), 32 bits each.
    private static let encoderTick: UInt64 = 1 << 32 | 200

    /// Replaces the encoder's tick in the first sequence parameter set.
    ///
    /// - Returns: The stream; nil if there is no such tick.
    static func replacingTick(in stream: [UInt8], by tick: (units: UInt32, scale: UInt32)) -> [UInt8]? {
        var stream = stream
        guard let unit = stream.withUnsafeMutableBufferPointer({ parameterSet(in: $0) }) else { return nil }
        var bytes = withoutEmulationPrevention(stream[unit])
        let last = 8 * bytes.count - 64
        guard last >= 0, let offset = (0...last).first(where: { bits(of: bytes, at: $0) == encoderTick }) else { return nil }
        let value = UInt64(tick.units) << 32 | UInt64(tick.scale)
        for index in 0..<64 {
            let mask = UInt8(0x80) >> UInt8((offset + index) % 8)
            let isSet = value >> UInt64(63 - index) & 1 == 1
            if isSet { bytes[(offset + index) / 8] |= mask } else { bytes[(offset + index) / 8] &= ~mask }
        }
        stream.replaceSubrange(unit, with: withEmulationPrevention(bytes))
        return stream
    }

    /// The place of the first sequence parameter set.
    private static func parameterSet(in bytes: UnsafeMutableBufferPointer<UInt8>) -> Range<Int>? {
        var next = startCode(in: bytes, from: 0)
        while let start = next {
            next = startCode(in: bytes, from: start.payload)
            if start.payload < bytes.count, bytes[start.payload] & 0x1f == sequenceParameters {
                return start.payload..<(next?.position ?? bytes.count)
            }
        }
        return nil
    }

    /// 64 bits from the bit at an offset.
    private static func bits(of bytes: [UInt8], at offset: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in offset..<offset + 64 {
            value = value << 1 | UInt64(bytes[index / 8] >> UInt8(7 - index % 8) & 1)
        }
        return value
    }

    /// A unit without the bytes 3 that keep start codes out of it (ITU-T H.264 §7.4.1).
    private static func withoutEmulationPrevention(_ unit: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var zeros = 0
        for byte in unit {
            let isAdded = zeros >= 2 && byte == 3
            zeros = byte == 0 ? zeros + 1 : 0
            if !isAdded { bytes.append(byte) }
        }
        return bytes
    }

    private static func withEmulationPrevention(_ bytes: [UInt8]) -> [UInt8] {
        var unit: [UInt8] = []
        var zeros = 0
        for byte in bytes {
            if zeros == 2, byte <= 3 {
                unit.append(3)
                zeros = 0
            }
            unit.append(byte)
            zeros = byte == 0 ? zeros + 1 : 0
        }
        return unit
    }

    /// Replaces the lengths in front of MP4's units with start codes (ISO/IEC 14496-15 §5.3.4.2): both have four bytes.
    ///
    /// - Returns: Whether the units filled the access unit exactly.
    static func replaceLengths(_ bytes: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        var position = 0
        while position + 4 <= bytes.count {
            let length = bytes[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= bytes.count - position - 4 else { return false }
            for (offset, byte) in startCode.enumerated() { bytes[position + offset] = byte }
            position += 4 + length
        }
        return position == bytes.count
    }

    private static let startCode: [UInt8] = [0, 0, 0, 1]

    /// Finds the next start code, of three or four bytes. Returns its position and the position of its unit.
    private static func startCode(
        in bytes: UnsafeMutableBufferPointer<UInt8>, from start: Int
    ) -> (position: Int, payload: Int)? {
        var index = start
        while index + 3 <= bytes.count {
            if bytes[index] == 0 && bytes[index + 1] == 0 && bytes[index + 2] == 1 {
                let isLong = index > start && bytes[index - 1] == 0
                return (isLong ? index - 1 : index, index + 3)
            }
            index += 1
        }
        return nil
    }
}
