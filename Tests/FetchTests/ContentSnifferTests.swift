import Fetch
import Testing

@Suite("Content is recognized by its first bytes") struct ContentSnifferTests {
    @Test(arguments: ["GIF87a", "GIF89a", "GIF89a and more"])
    func gifIsRecognized(text: String) {
        #expect(ContentSniffer.judge(text.utf8, isWhole: false) == .source)
    }

    static let others: [(bytes: [UInt8], kind: ContentKind)] = [
        ([], .empty),
        ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0], .png),
        ([0xff, 0xd8, 0xff, 0xe0], .jpeg),
        (Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8 ".utf8), .webp),
        (Array("RIFF\u{1}\u{2}\u{3}\u{4}AVI LIST".utf8), .avi),
        (Array("FLV\u{1}\u{5}".utf8), .flv),
        (Array("OggS\0\u{2}".utf8), .ogg),
        ([0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11, 0xa6], .wmv),
        ([0x47, 0x40, 0, 0x10], .mpegTS),
        ([0x47, 0x40, 0x11, 0x10], .mpegTS),
        ([0, 0, 0, 0x1c] + Array("ftypavif\0\0\0\0".utf8), .avif),
        ([0, 0, 0, 0x1c] + Array("ftypheic\0\0\0\0".utf8), .heic),
        ([0x1f, 0x8b, 8], .gzip),
        ([0x28, 0xb5, 0x2f, 0xfd, 4], .zstandard),
        (Array("%PDF-1.7".utf8), .pdf),
        ([0x50, 0x4b, 3, 4], .zip),
        (Array("BM\u{1}\u{2}".utf8), .bmp),
        ([0x49, 0x49, 0x2a, 0], .tiff),
        ([0, 0, 1, 0, 1], .icon),
        ([0xff, 0x0a], .jxl),
        (Array("<!DOCTYPE html><html>".utf8), .html),
        ([0xef, 0xbb, 0xbf] + Array("\n  <HTML>".utf8), .html),
        (Array("<svg xmlns=".utf8), .svg),
        (Array("<?xml version=\"1.0\"?><svg>".utf8), .svg),
        (Array("<?xml version=\"1.0\"?><Error>".utf8), .xml),
        (Array("{\"error\":1}".utf8), .json),
        (Array("404 not found".utf8), .text),
        (Array("Ошибка сервера".utf8), .text),
        (Array("服务器繁忙".utf8), .text),
        // Latin 1, a colour of terminals, UTF-16.
        (Array("acc".utf8) + [0xe8] + Array("s interdit".utf8), .text),
        (Array("\u{1b}[31mError".utf8), .text),
        ([0xff, 0xfe, 0x45, 0, 0x72, 0, 0x72, 0], .text),
        ([0xfe, 0xff, 0, 0x45, 0, 0x72, 0, 0x72], .text),
        (Array("Error\0".utf8), .unknown),
        (Array("GIF8".utf8), .text),
        (Array("GIF88a".utf8), .text),
        ([1, 2, 3, 4], .unknown),
    ]

    @Test(arguments: others)
    func otherContentIsNamed(bytes: [UInt8], kind: ContentKind) {
        #expect(ContentSniffer.judge(bytes, isWhole: true) == .notAnAnimation(kind))
    }

    @Test(arguments: [ContentKind.avi, .flv, .ogg, .wmv, .mpegTS])
    func aVideoInAnotherContainerIsNotCalledNoVideo(_ kind: ContentKind) {
        let sentence = kind.sentence("The file")
        #expect(sentence == "The file looks like \(kind.rawValue). Of videos, MP4, QuickTime and WebM are accepted.")
    }

    @Test(arguments: ["ftypisom", "ftypmp42", "ftypqt  ", "ftypavis", "moov\0\0\0\0", "mdat\0\0\0\0"])
    func clipsAndSequencesAreSources(_ start: String) {
        let bytes = [0, 0, 0, 0x1c] + Array(start.utf8) + [0, 0, 2, 0]
        #expect(ContentSniffer.judge(bytes, isWhole: false) == .source)
        #expect(ContentSniffer.judge(bytes.prefix(10), isWhole: false) == .undecided)
        #expect(ContentSniffer.judge([0x1a, 0x45, 0xdf, 0xa3, 1], isWhole: false) == .source)
    }

    /// The decoder looks for the brands behind other boxes.
    @Test(arguments: ["skip", "free", "uuid", "udta", "pnot", "wide"]) func boxesInFrontOfTheBrandsArePassed(_ type: String) {
        #expect(ContentSniffer.judge([0, 0, 0, 24] + Array(type.utf8) + [1, 2, 3, 4], isWhole: false) == .source)
        #expect(
            ContentSniffer.judge(Array("the \(type) of them".utf8), isWhole: true)
                == (type == "wide" ? .source : .notAnAnimation(.text)))
    }

    @Test func allBrandsOfAnImageFileCount() {
        func file(_ brands: String) -> [UInt8] { [0, 0, 0, UInt8(brands.utf8.count + 8)] + Array("ftyp\(brands)".utf8) }
        for major in ["mif1", "msf1", "heic"] {
            let sequence = file("\(major)0000miafavis")
            #expect(ContentSniffer.judge(sequence, isWhole: false) == .source)
            #expect(ContentSniffer.judge(sequence.prefix(20), isWhole: false) == .undecided)
            #expect(ContentSniffer.judge(file("\(major)0000avifmiaf"), isWhole: false) == .notAnAnimation(.avif))
            #expect(ContentSniffer.judge(file("\(major)0000miafheic"), isWhole: false) == .notAnAnimation(.heic))
        }
        #expect(ContentSniffer.judge(file("avif0000avismiaf"), isWhole: false) == .notAnAnimation(.avif))
        #expect(ContentSniffer.judge(file("iso80000avismiaf"), isWhole: false) == .source)
    }

    @Test func prefixOfTheSignatureIsUndecided() {
        for count in 0..<6 {
            #expect(ContentSniffer.judge("GIF89a".utf8.prefix(count), isWhole: false) == .undecided)
        }
    }

    @Test func unknownContentIsUndecidedUpToALimit() {
        #expect(ContentSniffer.judge("  ".utf8, isWhole: false) == .undecided)
        #expect(
            ContentSniffer.judge([UInt8](repeating: 0x20, count: ContentSniffer.sufficient), isWhole: false)
                == .notAnAnimation(.text))
        #expect(ContentSniffer.judge([UInt8](repeating: 7, count: 1000), isWhole: false) == .notAnAnimation(.unknown))
    }

    @Test func decisionNeverChangesAsBytesArrive() {
        for (bytes, _) in Self.others {
            let padded = bytes + [UInt8](repeating: 0, count: 64)
            let judgements = (0...padded.count).map { ContentSniffer.judge(padded.prefix($0), isWhole: false) }
            let isGIF = judgements.contains(.source)
            #expect(!isGIF, "\(bytes)")
            #expect(judgements.last != .undecided)
        }
    }

    private static let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

    private static func chunk(_ type: String, _ length: Int = 0) -> [UInt8] {
        [0, 0, 0, UInt8(length)] + Array(type.utf8) + [UInt8](repeating: 1, count: length + 4)
    }

    @Test func aPNGIsASourceIfItsAnimationPrecedesItsPixels() {
        let head = Self.png + Self.chunk("IHDR", 13)
        let animated = head + Self.chunk("acTL", 8)
        let still = head + Self.chunk("IDAT", 9)
        for count in 0..<head.count + 8 {
            #expect(ContentSniffer.judge(animated.prefix(count), isWhole: false) == .undecided, "\(count)")
        }
        #expect(ContentSniffer.judge(animated, isWhole: false) == .source)
        #expect(ContentSniffer.judge(head + Self.chunk("gAMA", 4) + Self.chunk("acTL", 8), isWhole: false) == .source)
        #expect(ContentSniffer.judge(still, isWhole: false) == .notAnAnimation(.png))
        #expect(
            ContentSniffer.judge(head + Self.chunk("gAMA", 4) + Self.chunk("IDAT", 8), isWhole: false) == .notAnAnimation(.png))
        let profile = head + Self.chunk("iCCP", 200)
        #expect(ContentSniffer.judge(profile, isWhole: false) == .undecided)
        #expect(ContentSniffer.judge(profile + Self.chunk("acTL", 8), isWhole: false) == .source)
        #expect(ContentSniffer.judge(profile + Self.chunk("IDAT", 8), isWhole: false) == .notAnAnimation(.png))
        // What follows long chunks is for the decoder to see.
        let long = (0..<10).reduce(head) { bytes, _ in bytes + Self.chunk("tEXt", 250) }
        #expect(ContentSniffer.judge(long, isWhole: false) == .source)
        #expect(ContentSniffer.judge(head, isWhole: true) == .source)
    }

    @Test func aWebPIsASourceIfItsHeaderSaysSo() {
        func webp(_ flags: UInt8) -> [UInt8] { Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8X\u{a}\0\0\0".utf8) + [flags] }
        for count in 12..<21 {
            #expect(ContentSniffer.judge(webp(2).prefix(count), isWhole: false) == .undecided, "\(count)")
        }
        #expect(ContentSniffer.judge(webp(2), isWhole: false) == .source)
        #expect(ContentSniffer.judge(webp(0x12), isWhole: false) == .source)
        #expect(ContentSniffer.judge(webp(0x10), isWhole: false) == .notAnAnimation(.webp))
        #expect(ContentSniffer.judge(webp(2).prefix(20), isWhole: true) == .notAnAnimation(.webp))
        #expect(ContentKind.webp.sentence("The file") == "This WebP has no animation.")
    }
}
