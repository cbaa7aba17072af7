import Glibc
import TestSupport
import Testing

@testable import Media

/// Drawings that make a larger MP4 than GIF stay legible.
@Suite("Stills and pages of text stay legible")
struct LegibilityTests {
    /// Five rows of three pixels per character.
    private static let font: [Character: [UInt8]] = [
        "A": [2, 5, 7, 5, 5], "E": [7, 4, 6, 4, 7], "G": [3, 4, 5, 5, 3], "H": [5, 5, 7, 5, 5], "I": [7, 2, 2, 2, 7],
        "L": [4, 4, 4, 4, 7], "N": [5, 7, 7, 5, 5], "O": [2, 5, 5, 5, 2], "R": [6, 5, 6, 5, 5], "S": [3, 4, 2, 1, 6],
        "T": [7, 2, 2, 2, 2], "X": [5, 5, 2, 5, 5], " ": [0, 0, 0, 0, 0],
    ]

    /// A page of text, black on white, whose characters are 3 × 5 pixels times `scale`.
    private func page(side: Int, scale: Int) -> [UInt8] {
        let words = Array("THIS LEGIBLE TEXT IS NOT A HORIZONTAL LINE SO THE GRAIN OF IT SHOWS ALL RIGHTS ")
            .map { Self.font[$0] ?? [7, 5, 5, 5, 7] }
        var pixels = [UInt8](repeating: 1, count: side * side)
        for y in 0..<side {
            let (line, row) = (y / scale / 7, y / scale % 7)
            if row > 4 { continue }
            for x in 0..<side {
                let (place, column) = (x / scale / 4, x / scale % 4)
                if column == 3 { continue }
                let character = words[(line * 31 + place) % words.count]
                if character[row] >> UInt8(2 - column) & 1 == 1 { pixels[y * side + x] = 0 }
            }
        }
        return pixels
    }

    @Test(arguments: [1, 2, 3]) func aPageOfTextIsLegible(_ scale: Int) throws {
        let side = 512
        let pixels = page(side: side, scale: scale)
        var builder = GIFBuilder(width: side, height: side, palette: [(0, 0, 0), (255, 255, 255)])
        builder.add(
            GIFBuilder.Frame(width: side, height: side, pixels: pixels), localPalette: nil
        ) { $0.minimumCodeSize = 2 }
        let mp4 = try Converted(builder.finish())
        let shown = try #require(try mp4.frames().first)
        let original = pixels.map { Double($0) * 255 }
        // Grey has the same value in all three components.
        let decoded = (0..<side * side).map { Double(shown[3 * $0 + 1]) }
        let quality = (psnr: Self.psnr(original, decoded), ssim: Self.ssim(original, decoded, width: side))
        #expect(quality.ssim >= 0.95 && quality.psnr >= 28, "\(quality)")
    }

    private static func psnr(_ first: [Double], _ second: [Double]) -> Double {
        let error = zip(first, second).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } / Double(first.count)
        return 10 * log10(255 * 255 / max(error, 1e-9))
    }

    /// The mean structural similarity over blocks of 8 × 8 (Wang et al. 2004).
    private static func ssim(_ first: [Double], _ second: [Double], width: Int) -> Double {
        let (c1, c2) = (6.5025, 58.5225)
        var sum = 0.0
        var blocks = 0.0
        for top in stride(from: 0, to: first.count / width - 7, by: 8) {
            for left in stride(from: 0, to: width - 7, by: 8) {
                var (a, b, aa, bb, ab) = (0.0, 0.0, 0.0, 0.0, 0.0)
                for y in top..<top + 8 {
                    for x in left..<left + 8 {
                        let (p, q) = (first[y * width + x], second[y * width + x])
                        a += p
                        b += q
                        aa += p * p
                        bb += q * q
                        ab += p * q
                    }
                }
                let n = 64.0
                let (ma, mb) = (a / n, b / n)
                let (va, vb, cov) = (aa / n - ma * ma, bb / n - mb * mb, ab / n - ma * mb)
                sum += (2 * ma * mb + c1) * (2 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2))
                blocks += 1
            }
        }
        return sum / blocks
    }
}
