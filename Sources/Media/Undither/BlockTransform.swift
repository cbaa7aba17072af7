/// An 8 × 8 block of samples or coefficients, and the integer transform of ITU-T H.264 §8.5.13, which approximates a DCT with
/// additions and shifts.
///
/// The rows of the transform matrix are orthogonal but differ in length: ``scale`` holds the squared lengths.
struct TransformBlock {
    typealias Row = SIMD8<Int16>

    var rows: (Row, Row, Row, Row, Row, Row, Row, Row)

    /// The squared length of each row of the matrix.
    static let scale: [Float] = [8, 9.03125, 5, 9.03125, 8, 9.03125, 5, 9.03125]

    /// Reads eight rows of eight samples.
    @inline(__always)
    init(_ samples: UnsafePointer<Int16>, stride: Int) {
        @inline(__always) func row(_ y: Int) -> Row { UnsafeRawPointer(samples + y &* stride).loadUnaligned(as: Row.self) }
        rows = (row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7))
    }

    /// Transforms columns, then rows. Coefficients are up to 64 times the samples. The result is transposed, which does not
    /// matter because all coefficient tables here are symmetric.
    @inline(__always)
    mutating func forward() {
        forwardColumns()
        transpose()
        forwardColumns()
    }

    /// Applies the transposed matrix, which turns coefficients divided by ``scale`` back into samples. Divides by 32 after the
    /// first pass.
    @inline(__always)
    mutating func inverse() {
        inverseColumns()
        @inline(__always) func reduced(_ row: Row) -> Row { (row &+ 16) &>> 5 }
        rows = (
            reduced(rows.0), reduced(rows.1), reduced(rows.2), reduced(rows.3), reduced(rows.4), reduced(rows.5),
            reduced(rows.6), reduced(rows.7)
        )
        transpose()
        inverseColumns()
    }

    @inline(__always)
    private mutating func forwardColumns() {
        let x = rows
        let (a0, a1, a2, a3) = (x.0 &+ x.7, x.1 &+ x.6, x.2 &+ x.5, x.3 &+ x.4)
        let (a4, a5, a6, a7) = (x.0 &- x.7, x.1 &- x.6, x.2 &- x.5, x.3 &- x.4)
        let (b0, b1, b2, b3) = (a0 &+ a3, a1 &+ a2, a0 &- a3, a1 &- a2)
        let b4 = a5 &+ a6 &+ (a4 &>> 1) &+ a4
        let b5 = a4 &- a7 &- (a6 &>> 1) &- a6
        let b6 = a4 &+ a7 &- (a5 &>> 1) &- a5
        let b7 = a5 &- a6 &+ (a7 &>> 1) &+ a7
        rows.0 = b0 &+ b1
        rows.1 = b4 &+ (b7 &>> 2)
        rows.2 = b2 &+ (b3 &>> 1)
        rows.3 = b5 &+ (b6 &>> 2)
        rows.4 = b0 &- b1
        rows.5 = b6 &- (b5 &>> 2)
        rows.6 = (b2 &>> 1) &- b3
        rows.7 = (b4 &>> 2) &- b7
    }

    @inline(__always)
    private mutating func inverseColumns() {
        let z = rows
        let (a0, a2) = (z.0 &+ z.4, z.0 &- z.4)
        let a4 = (z.2 &>> 1) &- z.6
        let a6 = z.2 &+ (z.6 &>> 1)
        let (b0, b2, b4, b6) = (a0 &+ a6, a2 &+ a4, a2 &- a4, a0 &- a6)
        let a1 = z.5 &- z.3 &- z.7 &- (z.7 &>> 1)
        let a3 = z.1 &+ z.7 &- z.3 &- (z.3 &>> 1)
        let a5 = z.7 &- z.1 &+ z.5 &+ (z.5 &>> 1)
        let a7 = z.3 &+ z.5 &+ z.1 &+ (z.1 &>> 1)
        let b1 = a1 &+ (a7 &>> 2)
        let b3 = a3 &+ (a5 &>> 2)
        let b5 = (a3 &>> 2) &- a5
        let b7 = a7 &- (a1 &>> 2)
        rows = (b0 &+ b7, b2 &+ b5, b4 &+ b3, b6 &+ b1, b6 &- b1, b4 &- b3, b2 &- b5, b0 &- b7)
    }

    @inline(__always)
    private mutating func transpose() {
        /// Interleaves the lower halves of two rows.
        @inline(__always) func low(_ a: Row, _ b: Row) -> Row { Row(a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]) }
        @inline(__always) func high(_ a: Row, _ b: Row) -> Row { Row(a[4], b[4], a[5], b[5], a[6], b[6], a[7], b[7]) }
        let r = rows
        // Interleaving rows that are four apart, three times, transposes the block.
        let (a0, a1, a2, a3) = (low(r.0, r.4), high(r.0, r.4), low(r.1, r.5), high(r.1, r.5))
        let (a4, a5, a6, a7) = (low(r.2, r.6), high(r.2, r.6), low(r.3, r.7), high(r.3, r.7))
        let (b0, b1, b2, b3) = (low(a0, a4), high(a0, a4), low(a1, a5), high(a1, a5))
        let (b4, b5, b6, b7) = (low(a2, a6), high(a2, a6), low(a3, a7), high(a3, a7))
        rows = (low(b0, b4), high(b0, b4), low(b1, b5), high(b1, b5), low(b2, b6), high(b2, b6), low(b3, b7), high(b3, b7))
    }
}

extension SIMD8<Int16> {
    /// Clamps the values with two instructions. The compiler does not inline the standard library's functions for this.
    @inline(__always)
    func clamped(from lower: Self, to upper: Self) -> Self { atLeast(lower).atMost(upper) }

    @inline(__always)
    func atLeast(_ bound: Self) -> Self { replacing(with: bound, where: self .< bound) }

    @inline(__always)
    func atMost(_ bound: Self) -> Self { replacing(with: bound, where: self .> bound) }
}
