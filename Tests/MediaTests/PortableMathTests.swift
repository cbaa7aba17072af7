import Foundation
import Testing

@testable import Media

@Suite("Logarithms and powers do not depend on the C library") struct PortableMathTests {
    @Test func theyAreTheTrueOnes() {
        for step in -400...400 {
            let x = Foundation.exp2(Double(step) * 0.0317) * (1 + Double(step % 7) * 0.013)
            #expect(abs(PortableMath.log2(x) - Foundation.log2(x)) <= 4e-15 * max(1, abs(Foundation.log2(x))), "\(x)")
            let y = Double(step) * 0.0473
            #expect(abs(PortableMath.exp2(y) / Foundation.exp2(y) - 1) <= 4e-15, "\(y)")
            #expect(abs(PortableMath.exp(y) / Foundation.exp(y) - 1) <= 4e-14, "\(y)")
        }
        for base in [0.001, 0.2, 0.5, 0.99, 1, 1.5, 40] {
            for power in [1 / 78.84375, 1 / 2.4, 0.2, 1, 1 / 0.159_301_757_812_5] {
                #expect(abs(PortableMath.pow(base, power) / Foundation.pow(base, power) - 1) <= 1e-13)
            }
        }
        #expect(PortableMath.pow(0, 0.2) == 0 && PortableMath.log2(8) == 3 && PortableMath.exp2(-3) == 0.125)
    }

    /// Bits that another C library or processor must give as well.
    @Test func theirBitsAreFixed() {
        #expect(PortableMath.log2(1.7).bitPattern == 0x3fe8_7f42_b972_949d)
        #expect(PortableMath.log2(0.003).bitPattern == 0xc020_c2fb_12a7_42e8)
        #expect(PortableMath.log2(123_456).bitPattern == 0x4030_e9e4_2479_df59)
        #expect(PortableMath.exp2(0.3).bitPattern == 0x3ff3_b2c4_7bff_8329)
        #expect(PortableMath.exp2(-7.77).bitPattern == 0x3f72_c3ee_9468_e86a)
        #expect(PortableMath.exp2(19.25).bitPattern == 0x4123_06fe_0a31_b715)
    }
}
