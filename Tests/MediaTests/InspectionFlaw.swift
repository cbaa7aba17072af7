import SystemIO

@testable import Media

/// The flaw that the inspection finds in a worker's file; nil for none.
func inspectionFlaw(_ bytes: [UInt8], _ claim: OutputClaim, limit: Int = 1 << 30) throws -> OutputFlaw? {
    var file = try MemoryFile(name: "test")
    try bytes.withUnsafeBytes { try file.append($0) }
    let sealed = try file.seal()
    do throws(OutputFlaw) {
        try OutputInspection.inspect(sealed, as: claim, limit: limit)
        return nil
    } catch {
        return error
    }
}
