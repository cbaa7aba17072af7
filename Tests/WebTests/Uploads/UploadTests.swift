import Foundation
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("Uploads are checked while they arrive", .timeLimit(.minutes(10))) struct UploadTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 40, height: 30)
    private static let boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gW"

    private typealias Part = (name: String, fileName: String?, content: [UInt8])

    /// A form with fields and files in order.
    private func form(_ parts: [Part]) -> [UInt8] {
        parts.flatMap { part in
            let file = part.fileName.map { "; filename=\"\($0)\"\r\nContent-Type: image/gif" } ?? ""
            let head = "--\(Self.boundary)\r\nContent-Disposition: form-data; name=\"\(part.name)\"\(file)\r\n\r\n"
            return Array(head.utf8) + part.content + [13, 10]
        } + Array("--\(Self.boundary)--\r\n".utf8)
    }

    private func post(_ web: WebFixture, _ target: String, _ body: [UInt8], isForm: Bool = false) async throws
        -> RawHTTPResponse
    {
        let type = isForm ? "multipart/form-data; boundary=\(Self.boundary)" : "image/gif"
        return try await web.request("POST", target, headers: ["Content-Type: \(type)"], body: body)
    }

    private func field(_ name: String, _ value: String) -> Part {
        (name, nil, Array(value.utf8))
    }

    private let file: Part = ("file", "a.gif", gif)

    @Test func aBodyAndAFormWithTheSameOptionsAreOneObject() async throws {
        try await WebFixture.run { web async throws in
            let body = try await post(web, "/mp4,width=20", Self.gif)
            #expect(
                body.status == 200 && body["content-type"] == "video/mp4" && body["cache-status"] == "gifreel; fwd=miss; stored"
            )
            let address = try #require(body["content-location"])
            #expect(address.hasPrefix("/object/") && address.hasSuffix(".mp4"))
            #expect(body["cache-control"] == "public, max-age=31536000, immutable")
            let filled = try await post(web, "/mp4", form([field("width", "20"), file]), isForm: true)
            #expect(filled["content-location"] == address && filled.body == body.body)
            // Fields may follow the file, and browsers send those that were left empty.
            let behind = try await post(web, "/mp4", form([file, field("fps", ""), field("width", "20")]), isForm: true)
            #expect(behind["content-location"] == address && behind["cache-status"] == "gifreel; hit")
            #expect(try await web.request("GET", address).body == body.body)
        }
    }

    @Test func optionsThatNeedOneAnotherMayBeSplitOverTargetAndForm() async throws {
        try await WebFixture.run { web async throws in
            let size = [field("width", "20"), field("height", "20")]
            let split = try await post(web, "/mp4?fit=cover", form(size + [file]), isForm: true)
            let whole = try await post(web, "/mp4,fit=cover,height=20,width=20", Self.gif)
            #expect(split.status == 200 && split["content-location"] == whole["content-location"], "\(split.text.prefix(200))")
            let alone = try await post(web, "/mp4?fit=cover", form([file]), isForm: true)
            #expect(alone.code == "bad_option" && alone.detail?.contains("“fit”") == true)
            #expect(try await post(web, "/mp4?fit=cover", Self.gif).code == "bad_option")
        }
    }

    @Test func theFactsOfAnUploadListStoredRenditionsOnly() async throws {
        try await WebFixture.run { web async throws in
            let before = try await post(web, "/json", Self.gif)
            #expect((try before.json()["renditions"] as? [String: Any])?.isEmpty == true)
            let source = try #require(try before.json()["source"] as? [String: Any])
            #expect(source["url"] is NSNull && source["frames"] as? Int == 4)
            _ = try await post(web, "/jpg", Self.gif)
            let after = try #require(try await post(web, "/json", Self.gif).json()["renditions"] as? [String: Any])
            #expect(Array(after.keys) == ["jpg"])
        }
    }

    @Test func theAddressOfFactsAnswersAsTheUploadDoes() async throws {
        try await WebFixture.run { web async throws in
            _ = try await post(web, "/jpg", Self.gif)
            let upload = try await post(web, "/json", Self.gif)
            let address = try #require(upload["content-location"])
            for _ in 0..<2 {
                let facts = try await web.request("GET", address)
                #expect(facts.body == upload.body && facts["content-type"] == "application/json")
                #expect(facts["cache-control"] == "public, max-age=60" && facts["cache-status"] == "gifreel; hit")
                #expect(facts["etag"] == upload["etag"])
            }
            _ = try await post(web, "/png", Self.gif)
            let later = try #require(try await web.request("GET", address).json()["renditions"] as? [String: Any])
            #expect(Set(later.keys) == ["jpg", "png"])
        }
    }

    @Test func aResultThatIsNotStoredHasNoAddress() async throws {
        try await WebFixture.run([:]) {
            $0.minFreeBytes = 1 << 60
        } _: { web async throws in
            for format in ["mp4", "json"] {
                let response = try await post(web, "/\(format)", Self.gif)
                #expect(response.status == 200 && response["content-location"] == nil, "\(format)")
                #expect(response["cache-status"] == "gifreel; fwd=miss; detail=low-space", "\(format)")
            }
        }
    }

    @Test func whatIsNoGIFIsRefused() async throws {
        try await WebFixture.run { web async throws in
            for (bytes, status, code) in [
                (Array("<html></html>".utf8), 415, "not_an_animation"),
                ([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10], 415, "not_an_animation"),
                (Array(Self.gif.prefix(13)), 422, "corrupt_gif"), (Array("GIF".utf8), 415, "not_an_animation"),
            ] {
                for isForm in [false, true] {
                    let body = isForm ? form([("file", "x", bytes)]) : bytes
                    let response = try await post(web, "/mp4", body, isForm: isForm)
                    #expect(response.status == status && response.code == code, "\(bytes.prefix(8)) \(isForm)")
                    #expect(response["access-control-allow-origin"] == "*")
                }
            }
            #expect(try await web.request("POST", "/mp4").code == "not_an_animation")
            #expect(try await post(web, "/html", Self.gif).code == "bad_request")
            #expect(try await post(web, "/mp4,width=1", Self.gif).code == "bad_option")
            #expect(try await post(web, "/mp4?url=http://a.test/x.gif", Self.gif).code == "bad_option")
        }
    }

    @Test func aFormHasOneFileAndValidFields() async throws {
        try await WebFixture.run { web async throws in
            let many = (0..<33).map { field("x\($0)", "1") }
            let cases: [(parts: [Part], code: String, detail: String)] = [
                ([field("width", "20")], "bad_request", "no file"), ([file, file], "bad_request", "more than one file"),
                (many + [file], "bad_request", "too many fields"), ([field("width", "1"), file], "bad_option", "“width”"),
                ([field("width", "20"), field("width", "20"), file], "bad_option", "given twice"),
                ([field("bg", String(repeating: "f", count: 3000)), file], "bad_option", "too long"),
                ([("width", nil, [0xff, 0xfe]), file], "bad_option", "neither text nor a file"),
                ([("a", nil, Self.gif), ("b", nil, Self.gif)], "bad_request", "more than one file"),
                ([field("nonsense", "1"), file], "bad_option", "not known"),
                ([field("url", "http://a.test/x.gif"), file], "bad_option", "url"),
            ]
            for (parts, code, detail) in cases {
                let response = try await post(web, "/mp4", form(parts), isForm: true)
                #expect(response.code == code && response.detail?.contains(detail) == true, "\(detail): \(response.text)")
            }
            let whole = form([file])
            let cut = try await post(web, "/mp4", Array(whole.dropLast(6)), isForm: true)
            #expect(cut.code == "bad_request" && cut.detail?.contains("incomplete") == true)
            let none = try await web.request("POST", "/mp4", headers: ["Content-Type: multipart/form-data"], body: whole)
            #expect(none.detail?.contains("boundary") == true)
        }
    }

    @Test func aURLInABodyIsToldOfGET() async throws {
        try await WebFixture.run { web async throws in
            let url = "http://a.test/x.gif"
            for (target, body, isForm) in [
                ("/mp4", form([field("url", url)]), true), ("/mp4", form([field("url", url), file]), true),
                ("/mp4?url=\(url)", [], false), ("/mp4", Array("url=\(url)&width=20".utf8), false),
                ("/mp4", Array(#"{"url": "\#(url)"}"#.utf8), false),
            ] as [(String, [UInt8], Bool)] {
                let response = try await post(web, target, body, isForm: isForm)
                #expect(response.detail?.contains("GET") == true, "\(response.text)")
            }
        }
    }

    /// RFC 7578 section 4.2 recommends a file name and does not require one.
    @Test func aFileNeedsNoName() async throws {
        try await WebFixture.run { web async throws in
            let named = try await post(web, "/mp4", form([file, field("width", "20")]), isForm: true)
            for parts in [[("file", nil, Self.gif), field("width", "20")], [field("width", "20"), ("x", nil, Self.gif)]]
                as [[Part]]
            {
                let unnamed = try await post(web, "/mp4", form(parts), isForm: true)
                #expect(unnamed.status == 200 && unnamed["content-location"] == named["content-location"], "\(unnamed.text)")
            }
        }
    }

    @Test func aFileThatWasNotChosenIsIgnored() async throws {
        try await WebFixture.run { web async throws in
            let alone = try await post(web, "/mp4", form([file]), isForm: true)
            let unchosen: Part = ("other", "", [])
            let beside = try await post(web, "/mp4", form([unchosen, file, unchosen]), isForm: true)
            #expect(
                beside.status == 200 && beside["content-location"] == alone["content-location"], "\(beside.text.prefix(200))")
            #expect(try await post(web, "/mp4", form([unchosen, unchosen]), isForm: true).detail == "The file is empty.")
        }
    }

    @Test func noCacheStoresARefusedUpload() async throws {
        try await WebFixture.run { web async throws in
            for (body, isForm) in [
                (Array("<html></html>".utf8), false), (Array(Self.gif.prefix(13)), false), ([], false),
                (form([("file", "x", Array("text".utf8))]), true), (form([("file", "x", [])]), true),
            ] as [([UInt8], Bool)] {
                let refused = try await post(web, "/mp4", body, isForm: isForm)
                #expect([415, 422].contains(refused.status) && refused["cache-control"] == "no-store", "\(refused.text)")
            }
            #expect(try await web.request("POST", "/nothing")["cache-control"] == "no-store")
            #expect(try await post(web, "/mp4", []).detail == "The file is empty.")
        }
    }

    @Test func theSizeLimitConcernsTheFileAlone() async throws {
        try await WebFixture.run([:]) {
            $0.policy.maxUploadBytes = Self.gif.count
        } _: { web async throws in
            let padding = (0..<20).map { _ in field("", "") } + [field("width", "20")]
            #expect(try await post(web, "/mp4", Self.gif).status == 200)
            #expect(try await post(web, "/mp4", form(padding + [file]), isForm: true).status == 200)
            let larger = Self.gif + [0]
            let chunk = Array("\(String(larger.count, radix: 16))\r\n".utf8) + larger + Array("\r\n0\r\n\r\n".utf8)
            let port = try #require(web.port)
            let chunked = try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send(Array("POST /mp4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".utf8) + chunk)
                return try client.readResponse()
            }
            let huge = [UInt8](repeating: 0, count: Self.gif.count + FormSink.overhead)
            let declared = try await post(web, "/mp4", larger)
            let part = try await post(web, "/mp4", form([("file", "a.gif", larger)]), isForm: true)
            let whole = try await post(web, "/mp4", form([file, ("b", "b.gif", huge)]), isForm: true)
            for refused in [declared, chunked, part, whole] {
                #expect(refused.status == 413 && refused.code == "content_too_large")
                #expect(refused.detail == "The file is larger than allowed; the limit is \(Self.gif.count) bytes.")
            }
        }
    }

    @Test func aFullServerRefusesUploadsBeforeTheirBody() async throws {
        let configure: (inout WebFixture.Settings) throws -> Void = {
            $0.uploads = UploadAdmission.Limits(uploads: 0, bytes: 0)
        }
        try await WebFixture.run([:], configure) { web async throws in
            let refused = try await post(web, "/mp4", Self.gif)
            #expect(refused.code == "overloaded" && refused["retry-after"] != nil)
        }
        try await WebFixture.run([:]) {
            $0.jobs = 0
        } _: { web async throws in
            #expect(try await post(web, "/mp4", Self.gif).code == "overloaded")
        }
    }

    @Test func aSignatureCoversTheFieldsOfAForm() async throws {
        let keys = SigningKeys(["0123456789abcdef0123456789abcdef"])
        let signature = try #require(
            keys.signature(of: SignedText("mp4", options: [QueryItem(name: "width", value: "20")], source: "")!.text))
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            settings.policy.signingKeys = keys
            settings.policy.requiresSignature = true
        }
        try await WebFixture.run([:], configure) { web async throws in
            let cases: [(target: String, fields: [Part], status: Int)] = [
                ("/mp4,width=20,sig=\(signature)", [], 200), ("/mp4,sig=\(signature)", [field("width", "20")], 200),
                ("/mp4", [field("width", "20"), field("sig", signature)], 200), ("/mp4", [field("width", "20")], 403),
                ("/mp4,sig=\(signature)", [field("width", "21")], 403), ("/mp4,sig=\(signature)", [], 403),
            ]
            for (target, fields, status) in cases {
                let response = try await post(web, target, form(fields + [file]), isForm: true)
                #expect(response.status == status, "\(target): \(response.text.prefix(200))")
            }
            #expect(try await post(web, "/mp4,width=20,sig=\(signature)", Self.gif).status == 200)
            #expect(try await post(web, "/mp4,width=20", Self.gif).code == "bad_signature")
        }
    }
}
