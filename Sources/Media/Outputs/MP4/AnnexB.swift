/// H.264 byte streams with start codes (ITU-T H.264 Annex B).
enum AnnexB {
    /// Removes all SEI units from an access unit in place. Returns the number of bytes that are left.
    static func removeSupplementalInformation(_ bytes: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var kept = 0
        var next = startCode(in: bytes, from: 0)
        while let start = next {
            let following = startCode(in: bytes, from: start.payload)
            let end = following?.position ?? bytes.count
            let isDropped = start.payload < end && bytes[start.payload] & 0x1f == AVCUnits.Kind.supplementalInformation
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

    /// Replaces the lengths in front of MP4's units with start codes (ISO/IEC 14496-15 §5.3.4.2): both have four bytes.
    ///
    /// - Returns: Whether the units filled the access unit exactly.
    static func replaceLengths(_ bytes: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        AVCUnits(lengthSize: 4).forEach(bytes) { unit in
            for index in unit.lowerBound - 4..<unit.lowerBound { bytes[index] = index == unit.lowerBound - 1 ? 1 : 0 }
        }
    }

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
