import TestSupport
import Testing

@testable import Media

@Suite("undither=auto takes dither out only where it certainly lies on a film") struct DitherDecisionTests {
    private static let width = DitheredFilm.width
    private static let height = DitheredFilm.height
    /// The greys of the film, and as many colours that it does not show: a palette of a film has many.
    private static let palette = DitheredFilm.greys + (0..<22).map { (UInt8(255), UInt8($0), UInt8($0 * 3)) }

    /// A gradient with a bright disc that moves.
    private static func film(_ frame: Int) -> [Double] {
        (0..<width * height).map { index in
            let (x, y) = (Double(index % width), Double(index / width))
            let distance = ((x - 20 - Double(frame) * 3) * (x - 20 - Double(frame) * 3) + (y - 30) * (y - 30)).squareRoot()
            return distance < 12 ? 220 - distance * 3 : 10 + x * 1.5 + y * 1.3
        }
    }

    private static func gif(_ palette: [GIFBuilder.Color] = palette, _ picture: (Int) -> [UInt8]) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: palette)
        for frame in 0..<4 {
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: picture(frame))) { $0.minimumCodeSize = 6 }
        }
        return builder.finish()
    }

    private func expect(
        _ gif: [UInt8], as output: OutputFormat = .mp4, isLike choice: TranscodeOptions.Undithering,
        _ change: (inout TranscodeOptions) -> Void = { _ in }, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let decided = try Converted(gif, as: output) {
            $0.undither = .automatic
            change(&$0)
        }
        let other = try Converted(gif, as: output) {
            change(&$0)
            $0.undither = choice
        }
        let isSame = decided.bytes == other.bytes
        #expect(isSame, "\(output)", sourceLocation: location)
        #expect(decided.result.isUndithered == (choice == .always), "\(output)", sourceLocation: location)
    }

    private static let outputs = [OutputFormat.mp4, .webm, .avif, .jpg, .png, .webp].filter(LinkedLibraries.offered.contains)

    @Test(arguments: outputs, DitheredFilm.Dither.allCases)
    private func aDitheredFilmLosesItsDither(_ output: OutputFormat, _ dither: DitheredFilm.Dither) throws {
        try expect(Self.gif { DitheredFilm.reduced(Self.film($0), dither) }, as: output, isLike: .always)
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func soDoesOneInAV1() throws {
        try expect(Self.gif { DitheredFilm.reduced(Self.film($0), .diffused) }, isLike: .always) { $0.codec = .av1 }
    }

    @Test(arguments: outputs) func aFilmWithoutDitherStaysAsItIs(_ output: OutputFormat) throws {
        try expect(Self.gif { DitheredFilm.reduced(Self.film($0), nil) }, as: output, isLike: .never)
    }

    @Test func aPaletteOfFewColoursIsADrawing() throws {
        try expect(Self.gif(DitheredFilm.greys) { DitheredFilm.reduced(Self.film($0), .diffused) }, isLike: .never)
    }

    @Test(arguments: [TranscodeOptions.Tune.screen, .pixel]) func whatIsSaidToBeADrawingStays(_ tune: TranscodeOptions.Tune)
        throws
    {
        try expect(Self.gif { DitheredFilm.reduced(Self.film($0), .diffused) }, isLike: .never) { $0.tune = tune }
    }

    /// Flat areas, of which one has a pattern of two near colours.
    @Test func aPatternInADrawingStays() throws {
        let gif = Self.gif { frame in
            (0..<Self.width * Self.height).map { index in
                let (x, y) = (index % Self.width, index / Self.width)
                if x < 30 { return UInt8(8 + (x + y) % 2) }
                return (x + 4 * frame) % 24 < 12 ? 3 : UInt8(10 + y / 16)
            }
        }
        try expect(gif, isLike: .never)
    }

    /// Part of a picture has diffused errors, as a photograph in a page has.
    @Test(arguments: [OutputFormat.mp4, .png]) func aPhotographInAPageStays(_ output: OutputFormat) throws {
        let gif = Self.gif { frame in
            let film = DitheredFilm.reduced(Self.film(0), .diffused)
            return film.enumerated().map { index, color in
                let (x, y) = (index % Self.width, index / Self.width)
                return x < 32 && y < 24 ? color : y % 8 < 5 && (x + 2 * frame) % 7 < 3 ? 2 : 20
            }
        }
        try expect(gif, as: output, isLike: .never)
    }

    /// A page that was dithered with its recording has the dither of a film, and large areas of few colours.
    @Test(arguments: [(256, Float(0.55), true), (256, 0.6, false), (64, 0.6, true), (64, 0.7, false)])
    func largeAreasOfFewColoursAreNoFilm(_ colors: Int, _ concentration: Float, _ isFilm: Bool) {
        let evidence = DitherEvidence(pictures: 2, dithered: 2, share: 0.4, concentration: 2 * concentration)
        #expect(evidence.isCertain(paletteColors: colors) == isFilm)
    }

    @Test func withoutTheOptionTheDecisionIsTaken() throws {
        let film = Self.gif { DitheredFilm.reduced(Self.film($0), .diffused) }
        #expect(try Converted(film).bytes == Converted(film) { $0.undither = .always }.bytes)
    }

    @Test(arguments: [OutputFormat.gif, .awebp]) func whatHasNoLossKeepsItsDither(_ output: OutputFormat) throws {
        try expect(Self.gif { DitheredFilm.reduced(Self.film($0), .diffused) }, as: output, isLike: .never)
    }
}
