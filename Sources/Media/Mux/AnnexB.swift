/// H.264 byte streams with start codes (ITU-T H.264 Annex B).
enum AnnexB {
    /// Supplemental enhancement information (ITU-T H.264 table 7-1).
    private static let supplementalInformation: UInt8 = 6

    /// Removes all SEI units from an access unit in place, and returns the bytes that are left.
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

    /// The next start code of three or four bytes: where it begins, and where its unit does.
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
