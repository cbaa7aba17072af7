import TestSupport
import Testing

@Suite("Responses tell that a source breaks off", .timeLimit(.minutes(10))) struct IncompleteSourceTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)
    private var half: [UInt8] { Array(gif.prefix(gif.count / 2)) }

    private func origin() throws -> LoopbackOrigin {
        let origin = try LoopbackOrigin()
        origin.on("/half.gif", .ok(half, ["Cache-Control: max-age=5000"]))
        origin.on("/whole.gif", .ok(gif, ["Cache-Control: max-age=5000"]))
        return origin
    }

    @Test(arguments: ["mp4", "mp4,codec=av1", "webm", "avif", "awebp", "gif", "jpg", "png,frame=auto", "webp,frame=9"])
    func renditionsOfSuchASourceAreTrustedForAShortTime(_ rendition: String) throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.cdn_max_age=30d"])
        for status in ["gifreel; fwd=miss; stored; detail=incomplete-source", "gifreel; hit; detail=incomplete-source"] {
            let answer = try server.request("GET", "/\(rendition)/\(origin.url("/half.gif"))")
            #expect(answer.status == 200 && answer["cache-status"] == status)
            #expect(answer.permits(600, "") && answer.permits(600, "", field: "cdn-cache-control"))
        }
        let answer = try server.request("GET", "/\(rendition)/\(origin.url("/whole.gif"))")
        #expect(answer["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(answer.permits(5000, ", stale-while-revalidate=604800, stale-if-error=604800"))
    }

    @Test func factsSayWhetherTheSourceIsComplete() throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        let broken = try server.request("GET", "/json/\(origin.url("/half.gif"))")
        #expect(broken.status == 200 && broken.text.contains("\"complete\":false"))
        #expect(broken["cache-status"] == "gifreel; fwd=miss; stored; detail=incomplete-source")
        let whole = try server.request("GET", "/json/\(origin.url("/whole.gif"))")
        #expect(whole.text.contains("\"complete\":true") && whole["cache-status"] == "gifreel; fwd=miss; stored")
    }

    /// An APNG whose second frame has too few rows.
    private var shortRows: [UInt8] {
        func frame(_ word: UInt32, height: Int = 30) -> APNGBuilder.Frame {
            APNGBuilder.Frame(width: 40, height: height, word: word)
        }
        var builder = APNGBuilder(width: 40, height: 30)
        builder.add(frame(0xffff_0000))
        builder.addControl(frame(0xff00_ff00))
        builder.addPixels(frame(0xff00_ff00, height: 20), as: "fdAT")
        builder.add(frame(0xff00_00ff))
        return builder.finish(frames: 3)
    }

    /// An animated WebP whose second frame has a sound header and damaged pixels.
    private var damagedPixels: [UInt8] {
        var builder = WebPBuilder(width: 40, height: 30)
        for seed in 1...3 {
            var numbers = SeededNumbers(seed: UInt64(seed))
            let words = (0..<1200).map { _ in UInt32(truncatingIfNeeded: numbers.next()) | 0xff00_0000 }
            builder.add(WebPBuilder.Frame(width: 40, height: 30, words: words))
        }
        var bytes = builder.finish()
        let chunks = bytes.indices.filter { bytes[$0...].starts(with: "VP8L".utf8) }
        // After the chunk's header, the signature and the size.
        for index in chunks[1] + 13..<chunks[1] + 200 { bytes[index] = 0xff }
        return bytes
    }

    @Test(arguments: ["mp4", "webm", "avif", "awebp", "gif", "jpg", "json"])
    func aFrameWhosePixelsCannotBeDecodedBreaksTheSourceOff(_ format: String) throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/rows.png", .ok(shortRows))
        origin.on("/pixels.webp", .ok(damagedPixels))
        let server = try GifreelProcess()
        for path in ["/rows.png", "/pixels.webp"] {
            let answer = try server.request("GET", "/\(format)/\(origin.url(path))")
            #expect(answer.status == 200, "\(path): \(answer.text.prefix(200))")
            #expect(answer["cache-status"] == "gifreel; fwd=miss; stored; detail=incomplete-source", "\(path)")
            if format == "json" {
                #expect(answer.text.contains("\"complete\":false") && answer.text.contains("\"frames\":1,"))
            } else {
                #expect(answer.permits(600, ""))
            }
        }
    }

    @Test func anObjectStaysImmutable() throws {
        let server = try GifreelProcess()
        let answer = try server.request("POST", "/mp4", body: half)
        #expect(answer.status == 200 && answer["cache-status"] == "gifreel; fwd=miss; stored; detail=incomplete-source")
        let path = try #require(answer["content-location"])
        let object = try server.request("GET", path)
        #expect(object["cache-status"] == "gifreel; hit; detail=incomplete-source")
        #expect(object.permits(31536000, ", immutable"))
    }

    @Test func aMissingEndMarkerIsNotMissed() throws {
        let origin = try origin()
        defer { origin.stop() }
        origin.on("/unmarked.gif", .ok(Array(gif.dropLast())))
        let server = try GifreelProcess()
        let answer = try server.mp4(origin.url("/unmarked.gif"))
        #expect(answer["cache-status"] == "gifreel; fwd=miss; stored")
    }
}
