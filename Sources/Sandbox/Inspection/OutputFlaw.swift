/// What is wrong with a worker's file. The raw value is for the log.
package enum OutputFlaw: String, Error, Sendable {
    /// A number that the worker reports is outside the range that it can have.
    case outOfRange
    /// It cannot be read.
    case unreadable
    /// It is not as long as the worker says, or longer than it may be.
    case wrongLength
    /// It does not begin as its format does.
    case wrongSignature
    /// Its parts do not fill it exactly, or lie within one another as they must not.
    case malformed
    /// It lacks a part that every such file has, or has it twice.
    case missingPart
    /// It refers to data outside itself.
    case foreignData
    /// It is coded otherwise than it should be.
    case wrongCodec
    /// Its width or height is not what the worker says.
    case wrongSize
    /// It does not last as long as the worker says.
    case wrongDuration
    /// It has more or fewer samples than the worker says.
    case wrongSampleCount
    /// Its samples lie outside its data.
    case strayingSamples
}
