/// Ambiguities of the GIF format, resolved as browsers resolve them.
enum GIFQuirks {
    /// Applications whose extension carries a loop count. NETSCAPE2.0 is the common one. ANIMEXTS1.0 is the same block under
    /// another name, written by some early tools.
    static let loopingApplications: [[UInt8]] = [Array("NETSCAPE2.0".utf8), Array("ANIMEXTS1.0".utf8)]

    /// LZW minimum code sizes that can be decoded. GIF89a Appendix F allows 2…8; some encoders write 1 for two colours and 0
    /// for one, and 12-bit codes fit 11-bit literals. An image with another size draws nothing, but its delay counts.
    static let codeSizes = 0...11

    /// The colour of a pixel whose index is beyond the palette: opaque black.
    static let missingColor = RGB(red: 0, green: 0, blue: 0)

    /// Disposal values 4…7 are reserved (GIF89a §23). Some encoders write 4 for “restore to previous”, and browsers read it
    /// that way. For the other values, browsers leave the frame in place.
    static func disposal(_ raw: UInt8) -> AnimationFrame.Disposal {
        raw == 4 ? .restore : AnimationFrame.Disposal(rawValue: raw) ?? .keep
    }
}
