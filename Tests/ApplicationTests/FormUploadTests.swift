import Foundation
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("Uploads by forms", .timeLimit(.minutes(10))) struct FormUploadTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)
    private let type = "Content-Type: multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW"

    private func field(_ name: String, _ value: String) -> [UInt8] {
        Array(
            "------WebKitFormBoundary7MA4YWxkTrZu0gW\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n"
                .utf8)
    }

    private func file(_ bytes: [UInt8], name: String = "a.gif") -> [UInt8] {
        Array(
            "------WebKitFormBoundary7MA4YWxkTrZu0gW\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(name)\"\r\nContent-Type: image/gif\r\n\r\n"
                .utf8)
            + bytes + Array("\r\n".utf8)
    }

    private let end = Array("------WebKitFormBoundary7MA4YWxkTrZu0gW--\r\n".utf8)

    @Test func aFileInAFormIsTheSameAsABody() throws {
        let server = try GifreelProcess()
        let plain = try server.request("POST", "/mp4", body: gif)
        let form = try server.request("POST", "/mp4", headers: [type], body: file(gif) + end)
        #expect(form.status == 200 && form["content-type"] == "video/mp4")
        #expect(form.body == plain.body && form["content-location"] == plain["content-location"])
        #expect(form["cache-status"] == "gifreel; hit")
    }

    @Test func fieldsOfAFormAreOptionsWhereverTheyStand() throws {
        let server = try GifreelProcess()
        let coarse = try server.request("POST", "/mp4,quality=5", body: gif)
        for body in [field("quality", "5") + file(gif) + end, file(gif) + field("quality", "5") + field("bg", "") + end] {
            let form = try server.request("POST", "/mp4", headers: [type], body: body)
            #expect(form.status == 200 && form.body == coarse.body)
        }
        let wrong = try server.request("POST", "/mp4", headers: [type], body: field("quality", "500") + file(gif) + end)
        #expect(wrong.status == 400 && wrong.text.contains("quality"))
        let twice = try server.request("POST", "/mp4,quality=5", headers: [type], body: field("quality", "5") + file(gif) + end)
        #expect(twice.status == 400 && twice.text.contains("twice"))
    }

    @Test func clientsThatTrickleShutOutNoOtherUpload() throws {
        let server = try GifreelProcess()
        let head = "POST /mp4 HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\nGIF89a"
        final class Trickle {
            let client: RawHTTPClient

            init(port: Int, _ head: String) throws {
                client = try RawHTTPClient(port: port)
                try client.send(Array(head.utf8))
            }
        }
        let trickling = try (0..<26).map { _ in try Trickle(port: server.port, head) }
        #expect(try server.request("POST", "/mp4", body: gif).status == 200)
        withExtendedLifetime(trickling) {}
    }

    @Test func formsWithoutOneGIFAreRefused() throws {
        let server = try GifreelProcess()
        let cases: [([UInt8], Int, String)] = [
            (field("quality", "5") + end, 400, "no file"), (file(gif) + file(gif) + end, 400, "more than one"),
            (file(gif), 400, "incomplete"), (file([], name: "") + end, 415, "empty"),
            (file(Array("hello, this is a text and no picture".utf8)) + end, 415, "text"),
        ]
        for (body, status, word) in cases {
            let answer = try server.request("POST", "/mp4", headers: [type], body: body)
            #expect(answer.status == status && answer.text.contains(word), "\(answer.text)")
        }
        let answer = try server.request("POST", "/mp4", headers: ["Content-Type: multipart/form-data"], body: file(gif) + end)
        #expect(answer.status == 400 && answer.text.contains("boundary"))
    }

    @Test func aFileInAFormIsBoundedAsABodyIs() throws {
        let server = try GifreelProcess(["sources.max_bytes=64KiB"])
        let large = Array("GIF89a".utf8) + [UInt8](repeating: 0, count: 65_536)
        #expect(try server.request("POST", "/mp4", headers: [type], body: file(large) + end).status == 413)
        var client = try RawHTTPClient(port: server.port)
        try client.send(
            Array("POST /mp4 HTTP/1.1\r\nHost: a\r\n\(type)\r\nContent-Length: 200000\r\nExpect: 100-continue\r\n\r\n".utf8))
        #expect(try client.readResponse().status == 413)
    }

    // MARK: Signatures

    private static let key = "an-example-key-of-at-least-32-bytes"

    /// The signature of an upload with these options, wherever they stand.
    private func signature(_ options: [(String, String)]) throws -> String {
        let items = options.map { QueryItem(name: $0.0, value: $0.1) }
        let text = try #require(SignedText("mp4", options: items, source: ""))
        return try #require(SigningKeys([Self.key]).signature(of: text.text))
    }

    @Test func aSignatureCoversTheOptionsOfTargetAndFormTogether() throws {
        let server = try GifreelProcess(["signing.keys=\(Self.key)"])
        let sig = try signature([("quality", "5"), ("width", "20")])
        for (target, body) in [
            ("/mp4,sig=\(sig)", field("quality", "5") + field("width", "20") + file(gif) + end),
            ("/mp4,quality=5,sig=\(sig)", field("width", "20") + file(gif) + end),
            ("/mp4,quality=5", field("sig", sig) + file(gif) + field("width", "20") + end),
            ("/mp4?width=20&quality=5", file(gif) + field("sig", sig) + end),
            ("/mp4", file(gif) + field("width", "20") + field("quality", "5") + field("sig", sig) + end),
            ("/mp4,quality=5,width=20,sig=\(sig)", file(gif) + end),
        ] {
            let answer = try server.request("POST", target, headers: [type], body: body)
            #expect(answer.status == 200, "\(target): \(answer.text.prefix(200))")
        }
        for (target, body) in [
            ("/mp4", field("quality", "5") + file(gif) + end), ("/mp4", file(gif) + end),
            ("/mp4,sig=\(sig)", field("quality", "6") + field("width", "20") + file(gif) + end),
            ("/mp4,sig=\(sig)", field("quality", "5") + file(gif) + end),
            ("/mp4,quality=5,width=20,sig=\(sig)", file(gif) + field("speed", "2") + end),
        ] {
            let answer = try server.request("POST", target, headers: [type], body: body)
            #expect(answer.status == 403 && answer.text.contains("bad_signature"), "\(target)")
        }
        let twice = try server.request(
            "POST", "/mp4,quality=5,width=20,sig=\(sig)", headers: [type], body: field("sig", sig) + file(gif) + end)
        #expect(twice.status == 400 && twice.text.contains("sig"))
    }

    @Test func anUploadIsNotCachedForLongerThanItsSignatureHolds() throws {
        let server = try GifreelProcess(["signing.keys=\(Self.key)"])
        let expires = String(Int(Date().timeIntervalSince1970) + 60)
        let sig = try signature([("expires", expires)])
        let body = try server.request("POST", "/mp4,expires=\(expires),sig=\(sig)", body: gif)
        let form = try server.request(
            "POST", "/mp4", headers: [type], body: field("expires", expires) + field("sig", sig) + file(gif) + end)
        for answer in [body, form] {
            let age = try #require(answer["cache-control"]?.split(separator: "=").last.flatMap { Int($0) })
            #expect(answer.status == 200 && (1...60).contains(age), "\(answer["cache-control"] ?? "")")
        }
        let past = try signature([("expires", "1000")])
        let late = try server.request(
            "POST", "/mp4", headers: [type], body: field("expires", "1000") + field("sig", past) + file(gif) + end)
        #expect(late.status == 403 && late.text.contains("expired_signature"))
        let plain = try server.request("POST", "/mp4,sig=\(try signature([]))", body: gif)
        #expect(plain["cache-control"] == "public, max-age=31536000, immutable")
    }
}
