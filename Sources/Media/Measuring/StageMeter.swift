/// The stages of a conversion that are measured apart.
enum ConversionStage {
    case scan
    case decode
    case compose
    case convert
    case encode
    case mux
}

/// Is told by a conversion what it has just done, so that what is measured is the conversion itself.
protocol StageMeter {
    /// The stage has been worked at since the last call.
    mutating func worked(at stage: ConversionStage)
    /// An image of the GIF has been decoded that has so many pixels.
    mutating func decoded(pixels: Int)
    /// A sample of so many pixels goes to the encoder.
    mutating func sampled(pixels: Int)
}

/// Measures nothing, and costs nothing.
struct NoMeter: StageMeter {
    mutating func worked(at stage: ConversionStage) {}
    mutating func decoded(pixels: Int) {}
    mutating func sampled(pixels: Int) {}
}
