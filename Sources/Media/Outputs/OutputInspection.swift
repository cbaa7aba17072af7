package import SystemIO

/// Holds a worker's file against what the worker says of it, before anybody else sees the file.
///
/// The code that made the file had a hostile GIF in its hands. So nothing is taken from it but bytes, through bounds that
/// are checked: the file must be one whole file of its format, with the size, duration and samples that were claimed.
package enum OutputInspection {
    /// Inspects the file.
    ///
    /// - Parameter limit: Bytes that it may have at most.
    /// - Throws: The first flaw.
    package static func inspect(_ file: SharedDescriptor, as claim: OutputClaim, limit: Int) throws(OutputFlaw) {
        guard claim.isInRange else { throw .outOfRange }
        let bytes = try OutputBytes(file)
        guard bytes.count == claim.bytes, bytes.count <= limit else { throw .wrongLength }
        try claim.format.traits.inspect(bytes, claim)
    }
}
