package import SystemIO

/// Compares a worker's file with the worker's claim about it, before any other code reads the file.
///
/// The process that wrote the file has decoded a hostile source. Therefore, only bytes are read from it, with bounds checks:
/// they must form one complete file of the format, with the claimed size, duration and samples.
package enum OutputInspection {
    /// Inspects the file.
    ///
    /// - Parameter limit: The largest length in bytes.
    /// - Returns: The `codecs` parameter of the file's media type (RFC 6381), read from the file; nil if the media type has
    ///   none.
    /// - Throws: The first flaw.
    @discardableResult
    package static func inspect(
        _ file: SharedDescriptor, as claim: OutputClaim, limit: Int
    ) throws(OutputFlaw) -> String? {
        guard claim.isInRange else { throw .outOfRange }
        let bytes = try OutputBytes(file)
        guard bytes.count == claim.bytes, bytes.count <= limit else { throw .wrongLength }
        return try claim.format.traits.inspect(bytes, claim)
    }
}
