import Media
import Renditions
import Testing

@testable import Web

@Suite("Renditions and their canonical text") struct RenditionTests {
    private func canonical(_ format: Rendition.Format, _ options: String) throws -> String {
        try made(format, options).canonicalText
    }

    private func made(_ format: Rendition.Format, _ options: String) throws -> Rendition {
        var reader = OptionReader(format: format)
        for option in options.split(separator: ",") { try reader.readPair(option) }
        return try reader.finish()
    }

    private func refusal(_ format: Rendition.Format, _ options: String) -> Problem? {
        do {
            _ = try canonical(format, options)
            return nil
        } catch {
            return error as? Problem
        }
    }

    @Test func everyOptionIsInTheCanonicalText() throws {
        let video = "width=480,height=270,fit=cover,bg=00ff7f,quality=80,speed=1.5,fps=12.5,start=0.5,end=2,loops=3"
        #expect(
            try canonical(.mp4, video)
                == "mp4,bg=00ff7f,end=2,fit=cover,fps=12.5,height=270,loops=3,quality=80,speed=1.5,start=0.5,width=480")
        #expect(try canonical(.webp, "frame=7,width=2,quality=1") == "webp,frame=7,quality=1,width=2")
        #expect(try canonical(.mp4, "zoom=4,undither=1") == "mp4,undither=1,zoom=4")
        #expect(try canonical(.mp4, "tune=pixel,codec=av1") == "mp4,codec=av1,tune=pixel")
        #expect(try canonical(.mp4, "tune=auto") == "mp4")
        #expect(try canonical(.mp4, "undither=0") == "mp4,undither=0")
        #expect(try canonical(.mp4, "codec=av1,chroma=420") == "mp4,chroma=420,codec=av1")
        #expect(try canonical(.mp4, "width=20,bframes=0") == "mp4,bframes=0,width=20")
        // What has no loss keeps its dither in any case.
        #expect(try canonical(.gif, "undither=0") == "gif")
        let crop = "fit=cover,height=90,width=160"
        #expect(try canonical(.mp4, crop + ",gravity=0.5:0") == "mp4,fit=cover,gravity=top,height=90,width=160")
        #expect(try canonical(.mp4, crop + ",gravity=0.3:00.25") == "mp4,fit=cover,gravity=0.3:0.25,height=90,width=160")
        #expect(try canonical(.mp4, crop + ",gravity=center") == "mp4," + crop)
        #expect(try canonical(.output(.avif), "max_bytes=256000") == "avif,max_bytes=256000")
        #expect(try canonical(.mp4, "tune=film") == "mp4,tune=film")
        #expect(try canonical(.html, video + ",frame=1").hasPrefix("html,bg=00ff7f,end=2,fit=cover,fps=12.5,frame=1,"))
    }

    @Test(
        arguments: [
            (
                "quality=60,bg=FFFFFF,speed=1.0,loops=1,start=0.00,fit=contain,codec=h264,undither=auto,zoom=1,chroma=auto,bframes=auto",
                "mp4"
            ),
            ("codec=av1", "mp4,codec=av1"),
            ("speed=0.5000", "mp4,speed=0.5"), ("speed=2.00049", "mp4,speed=2"), ("speed=1.2345", "mp4,speed=1.235"),
            ("fps=29.97", "mp4,fps=29.97"), ("fps=060", "mp4,fps=60"), ("start=1.005,end=02.5", "mp4,end=2.5,start=1.01"),
            ("width=0480", "mp4,width=480"), ("bg=ABCDEF", "mp4,bg=abcdef"), ("end=0.01", "mp4,end=0.01"),
        ])
    func allSpellingsOfAValueHaveOneCanonicalText(_ options: String, _ text: String) throws {
        #expect(try canonical(.mp4, options) == text)
        #expect(try made(.mp4, options) == made(.mp4, text.dropFirst(3).trimmingPrefix(",").description))
    }

    @Test(
        arguments: [
            ("width", ["1", "4097", "-2", "+2", "2.5", "", "x", "99999999999999999999", "0x10"]), ("height", ["1", "4097"]),
            ("fit", ["Contain", "inside", ""]), ("bg", ["fff", "#ffffff", "gggggg", "fffffff", "+12345"]),
            ("quality", ["0", "101", "6e1"]), ("speed", ["0.09", "10.001", "0", "-1", "1.", ".5", "1e0", "nan", "1;5"]),
            ("fps", ["0.9", "60.001", "0"]), ("start", ["-1", "1:00", "86400.01"]), ("end", ["0", "0.001", "inf"]),
            ("loops", ["0", "21", "1.5"]), ("undither", ["2", "-1", "01", ""]), ("chroma", ["444", "4:2:0", ""]),
            ("bframes", ["1", "3", ""]),
            ("zoom", ["0", "9", "1.5"]),
            ("tune", ["Film", "2", ""]), ("max_bytes", ["999", "100000001", "1e4", ""]),
            ("gravity", ["north", "top-center", "1.001:0", "0.5", ":0.5", ""]),
        ])
    func whatIsOutOfRangeIsRefusedByName(_ name: String, _ values: [String]) {
        for value in values {
            let refusal = refusal(.mp4, "\(name)=\(value)")
            #expect(refusal?.code == "bad_option" && refusal?.detail.contains("“\(name)”") == true, "\(name)=\(value)")
        }
    }

    @Test func anObjectIsNamedForTheVersionOfItsCodec() throws {
        let (plain, explicit) = (try made(.mp4, ""), try made(.mp4, "codec=h264"))
        #expect(plain == explicit && plain.encoderVersion(of: .gif) == explicit.encoderVersion(of: .gif))
        #expect(plain.encoderVersion(of: .gif).hasPrefix("x264-"))
        #expect(plain.encoderVersion(of: .gif) != plain.encoderVersion(of: .mp4))
        #expect(try made(.mp4, "codec=av1").encoderVersion(of: .gif).hasPrefix("aom-"))
    }

    @Test func anUnknownCodecIsRefusedByNameOfTheOption() {
        for value in ["vp9", "AV1", "", "h265"] {
            let refusal = refusal(.mp4, "codec=\(value)")
            #expect(refusal?.code == "bad_option")
            #expect(refusal?.detail == "The option “codec” must be h264 or av1.")
        }
    }

    @Test func aFormatWithoutLossHasAQualityOnlyIfOneIsGiven() throws {
        #expect(try canonical(.awebp, "quality=60") == "awebp,quality=60")
        #expect(try canonical(.awebp, "quality=lossless") == "awebp" && canonical(.mp4, "quality=60") == "mp4")
        for value in ["0", "101", "lossy", "Lossless", ""] {
            #expect(refusal(.awebp, "quality=\(value)")?.code == "bad_option", "\(value)")
        }
        #expect(refusal(.mp4, "quality=lossless")?.code == "bad_option")
        // Of a negotiated answer, the sequence has the quality of the video only if the request names one.
        var video = Rendition(format: .mp4)
        #expect(video.inFormat(.awebp).canonicalText == "awebp")
        try video.set("quality", to: "80")
        #expect(video.inFormat(.awebp).canonicalText == "awebp,quality=80")
        var webp = Rendition(format: .awebp)
        try webp.set("quality", to: "60")
        #expect(webp.inFormat(.mp4) == Rendition(format: .mp4))
    }

    @Test func framesAreCountedFromZero() throws {
        for value in ["-1", "1.5", "", "9999999999"] { #expect(refusal(.png, "frame=\(value)")?.code == "bad_option") }
        #expect(try canonical(.png, "frame=999999999") == "png,frame=999999999")
    }

    @Test(
        arguments: [
            (Rendition.Format.mp4, ["facts", "frame", "preset"]),
            (.output(.webm), ["bframes", "bg", "codec", "facts", "frame"]),
            (.output(.avif), ["bframes", "bg", "codec", "facts", "frame", "preset"]),
            (.awebp, ["bframes", "bg", "chroma", "codec", "facts", "frame", "preset", "tune"]),
            (.gif, ["bframes", "bg", "chroma", "codec", "facts", "frame", "preset", "tune"]),
            (
                .jpg,
                [
                    "bframes", "chroma", "codec", "facts", "speed", "fps", "start", "end", "loops", "max_bytes", "preset",
                    "tune",
                ]
            ),
            (
                .webp,
                [
                    "bframes", "bg", "chroma", "codec", "facts", "speed", "fps", "start", "end", "loops", "max_bytes", "preset",
                    "tune",
                ]
            ),
            (
                .png,
                [
                    "bframes", "bg", "chroma", "codec", "facts", "quality", "speed", "fps", "start", "end", "loops",
                    "max_bytes",
                    "preset", "tune",
                ]
            ),
            (.json, RenditionOption.allCases.map(\.rawValue).filter { $0 != "facts" }),
            (.html, ["bframes", "codec", "facts", "preset"]),
        ])
    func whatHasNoEffectOnAFormatIsRefusedByName(_ format: Rendition.Format, _ names: [String]) {
        let value = [
            "preset": "sticker", "fit": "contain", "bg": "ffffff", "start": "1", "codec": "av1", "undither": "1", "zoom": "2",
            "tune": "film", "bframes": "0", "chroma": "420", "gravity": "left", "max_bytes": "5000",
            "facts": "fingerprints",
        ]
        for option in RenditionOption.allCases.map(\.rawValue) {
            let others = option == "gravity" && format != .json ? ",fit=cover,width=20,height=20" : ""
            let refusal = refusal(format, "\(option)=\(value[option] ?? "10")\(others)")
            if names.contains(option) {
                #expect(refusal?.detail == "The option “\(option)” has no effect on \(format.rawValue).")
            } else {
                #expect(refusal == nil, "\(option)")
            }
        }
    }

    @Test func unknownAndRepeatedOptionsAreRefusedByName() {
        #expect(refusal(.mp4, "with=3")?.detail == "The option “with” is not known (did you mean “width”?).")
        #expect(refusal(.mp4, "width=30,width=30")?.detail == "The option “width” is given twice.")
        #expect(refusal(.mp4, "width")?.code == "bad_option")
    }

    @Test func anOptionThatNeedsAnotherIsRefusedAlone() throws {
        #expect(refusal(.mp4, "fit=cover,width=20")?.detail.contains("“fit”") == true)
        #expect(refusal(.mp4, "gravity=top,fit=pad,width=20,height=20")?.detail.contains("“gravity”") == true)
        #expect(refusal(.jpg, "fit=fill,height=20")?.detail.contains("“fit”") == true)
        #expect(refusal(.mp4, "start=2,end=2")?.detail.contains("“end”") == true)
        #expect(try canonical(.mp4, "fit=fill,width=20,height=30") == "mp4,fit=fill,height=30,width=20")
    }

    @Test func aPagePassesEachOptionToTheVideoOrThePosterThatHasIt() throws {
        let page = try made(.html, "width=40,speed=2,frame=3,bg=000000,quality=70,tune=film")
        #expect(page.inFormat(.mp4).canonicalText == "mp4,bg=000000,quality=70,speed=2,tune=film,width=40")
        #expect(page.inFormat(.jpg).canonicalText == "jpg,bg=000000,frame=3,quality=70,width=40")
        #expect(page.inFormat(.png).canonicalText == "png,frame=3,width=40")
        #expect(page.inFormat(.json).canonicalText == "json")
    }
}
