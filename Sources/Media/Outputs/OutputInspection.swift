package import SystemIO

/// Compares a worker's file with the worker's claim about it, before any other code reads the file.
///
/// The process that wrote the file has decoded a hostile source. So only bytes are taken from it, through checked bounds: they must
/// form one complete file of the format, with the claimed size, duration and samples.
package enum OutputInspection {
    /// Inspects the file.
    ///
    /// - Parameter limit: The largest length in bytes.
    /// - Throws: The first flaw.
    package static func inspect(_ file: SharedDescriptor, as claim: OutputClaim, limit: Int) throws(OutputFlaw) {
        guard claim.isInRange else { throw .outOfRange }
        let bytes = try OutputBytes(file)
        guard bytes.count == claim.bytes, bytes.count <= limit else { throw .wrongLength }
        try claim.format.traits.inspect(bytes, claim)
    }
}
