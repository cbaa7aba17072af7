import Fetch
import Fleet
import Foundation
import HTTP
import Media
import Prewarm
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("/openapi.json says what the code does") struct OpenAPITests {
    private static let gif = GIFBuilder.animation(frames: 3, width: 40, height: 30)
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func presets() throws -> RenditionPresets {
        var presets = RenditionPresets()
        try presets.add("card", [.init(name: "width", value: "20")])
        return presets
    }

    private func parser() throws -> RouteParser {
        RouteParser(
            mounts: ["example": Mount(origin: try SourceURL("https://example.com/"))],
            defaults: RenditionDefaults(presets: try presets()))
    }

    @Test func everyOperationIsARouteWithItsMethodsAndNoOther() throws {
        let table = APIOperation.table(try presets())
        for (path, operations) in Dictionary(grouping: table, by: \.path) {
            var methods = Set(operations.map(\.method))
            if methods.contains("get") { methods.insert("head") }
            var known: Set<String> = []
            for operation in operations {
                let route = try parser().parse(operation.example, hasBody: operation.method == "post").route
                known.formUnion(route.methods.map { $0.description.lowercased() })
            }
            #expect(methods == known.subtracting(["options", "purge"]), "\(path)")
        }
        #expect(Set(table.map(\.id)).count == table.count)
    }

    @Test func everyRouteHasAnOperation() throws {
        let segments = Set(APIOperation.table(try presets()).map { $0.path.split(separator: "/").first.map(String.init) ?? "" })
        #expect(segments == Route.reservedNames.union(["", "{mount}"]))
    }

    @Test func everyOptionOfAFormatIsAParameterAndEveryParameterAnOption() throws {
        for operation in APIOperation.table(try presets())
        where operation.id.hasPrefix("get_") && operation.path.dropFirst().allSatisfy({ $0 != "/" }) {
            guard let format = Rendition.Format.named(operation.path.dropFirst()) else { continue }
            var names = Set(RenditionOption.allCases.filter { $0.applies(to: format) }.map(\.rawValue))
            if format != .json { names.insert("preset") }
            if format != .json { names.insert("on_miss") }
            if format == .html { names.formUnion(["on_error", "title"]) }
            if [Rendition.Format.mp4, .output(.webm)].contains(format) || format.isSequence { names.insert("on_larger") }
            #expect(Set(operation.queryNames) == names.union(["url", "callback", "expires", "sig"]), "\(format)")
        }
    }

    @Test func anEntryOfAPrewarmListHasAFormatThatCanBeStored() {
        let formats = APISchemas.named["PrewarmEntry"]?["properties"]?["format"]?["enum"]
        let stored = Rendition.Format.offered.filter { $0.output != nil }
        #expect(formats == JSONValue.list(stored.map { JSONValue.text($0.rawValue) }))
    }

    /// Whether a format reads the value.
    private func isRead(_ option: RenditionOption, _ value: String, _ format: Rendition.Format) -> Bool {
        var rendition = Rendition(format: format)
        return (try? rendition.set(option.rawValue, to: value)) != nil
    }

    @Test(arguments: RenditionOption.allCases) func theValuesOfAnOptionAreThoseThatAreRead(_ option: RenditionOption) throws {
        for format in Rendition.Format.offered where option.applies(to: format) {
            func reads(_ value: String) -> Bool { isRead(option, value, format) }
            let domain = option.domain(of: format)
            switch domain {
            case .whole(let range), .wholeOr(let range, _):
                for value in [range.lowerBound, range.upperBound] { #expect(reads("\(value)"), "\(format) \(value)") }
                for value in [range.lowerBound - 1, range.upperBound + 1] { #expect(!reads("\(value)"), "\(format) \(value)") }
            case .decimal(let range):
                for value in [range.lowerBound, range.upperBound] { #expect(reads("\(value)"), "\(format) \(value)") }
                for value in [range.lowerBound - 0.01, range.upperBound + 0.01] {
                    #expect(!reads("\(value)"), "\(format) \(value)")
                }
            case .words(let words):
                for word in words { #expect(reads(word), "\(format) \(word)") }
                #expect(!reads("other"))
            case .wordsOrPoint(let words):
                for word in words + ["0:0", "1:1", "0.25:0.5", "1.0:0"] { #expect(reads(word), "\(format) \(word)") }
                for word in ["other", "0.5", "1.1:0", "0:1.001", "-1:0", ":", "0:0:0", "0,5:1"] {
                    #expect(!reads(word), "\(format) \(word)")
                }
            case .colour:
                #expect(reads("00fF9a") && !reads("00ff9") && !reads("00ff9g"))
            }
            if case .wholeOr(_, let word) = domain { #expect(reads(word)) }
            if case .whole = domain { #expect(!reads(RenditionOption.lossless), "\(format)") }
            guard let text = option.defaultText(of: format) else { continue }
            var rendition = Rendition(format: format)
            try rendition.set(option.rawValue, to: text)
            #expect(rendition == Rendition(format: format), "\(format)")
        }
    }

    @Test func everyProblemOfTheCodeIsInTheTable() throws {
        let folder = root.appendingPathComponent("Sources/Web")
        var found: Set<String> = []
        for case let path as String in FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []
        where path.hasSuffix(".swift") && !path.hasSuffix("ProblemTable.swift") {
            let text = try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
            for match in text.matches(of: /\(\s*([45]\d\d), "([a-z_]+)"/) { found.insert("\(match.1) \(match.2)") }
        }
        for error in HTTPProtocolError.allCases { found.insert("\(error.status) \(error.code)") }
        #expect(found.count > 25)
        #expect(found == Set(ProblemTable.all.map { "\($0.status) \($0.code)" }))
    }

    @Test func everyProblemIsDocumented() throws {
        let text = try String(contentsOf: root.appendingPathComponent("docs/api.md"), encoding: .utf8)
        let codes = Set(ProblemTable.all.map(\.code)).subtracting(HTTPProtocolError.allCases.map(\.code))
        for code in codes { #expect(text.contains("`\(code)`"), "\(code)") }
    }

    @Test func theDocumentIsServedForCaches() async throws {
        try await WebFixture.run { web async throws in
            let first = try await web.request("GET", "/openapi.json")
            #expect(first.status == 200 && first["content-type"] == "application/json")
            #expect(first["cache-control"] == "public, max-age=300, stale-while-revalidate=86400")
            let document = try first.json()
            #expect(document["openapi"] as? String == "3.1.0")
            let tag = try #require(first["etag"])
            #expect(try await web.request("GET", "/openapi.json", headers: ["If-None-Match: \(tag)"]).status == 304)
            #expect(try await web.request("HEAD", "/openapi.json").status == 200)
            #expect(try await web.request("POST", "/openapi.json").status == 405)
        }
    }

    @Test func theIndexForLanguageModelsLeadsToEachOperation() async throws {
        try await WebFixture.run { web async throws in
            let index = try await web.request("GET", "/llms.txt")
            #expect(index.status == 200 && index["content-type"] == "text/plain; charset=utf-8")
            // The form of llmstxt.org: a heading, a quotation, and sections with links.
            #expect(index.text.hasPrefix("# Gifreel\n\n> "))
            #expect(index.text.matches(of: /(?m)^## .+\n\n- \[/).count == 4)
            let document = OpenAPIDocument.document(RenditionPresets(), version: "1", publicURL: nil)
            var found: Set<String> = []
            for link in index.text.matches(of: /(?m)^- \[[^\]]+\]\(openapi\.json#([^)]+)\): \S/) {
                let pointer = try #require(String(link.1).removingPercentEncoding)
                let names = pointer.split(separator: "/").map {
                    String($0).replacing("~1", with: "/").replacing("~0", with: "~")
                }
                let operation = names.reduce(document as JSONValue?) { $0?[$1] }
                if case .text(let id)? = operation?["operationId"] { found.insert(id) } else { Issue.record("\(pointer)") }
            }
            let table = APIOperation.table(RenditionPresets())
            #expect(found == Set(table.filter { !$0.path.hasSuffix("/{source}") }.map(\.id)))
        }
    }

    @Test func partsOfPagesAndDocumentsAreAmongTheResponses() async throws {
        let table = APIOperation.table(try presets())
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            for (path, query) in [
                ("/", ""), ("/gifreel.js", ""), ("/openapi.json", ""), ("/oembed", "?url=\(web.origin.url("/a.gif"))"),
            ] {
                let operation = try #require(table.first { $0.path == path })
                for (range, status) in [("bytes=0-9", 206), ("bytes=99999999-", 416)] {
                    let response = try await web.request("GET", path + query, headers: ["Range: \(range)"])
                    #expect(response.status == status && operation.statuses.contains(status), "\(path): \(response.status)")
                }
            }
        }
    }

    @Test func statusesAndPartsHaveTheTypesOfTheirBodies() async throws {
        let table = APIOperation.table(try presets())
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            for format in ["json", "mp4"] {
                let answers = try #require(table.first { $0.id == "get_\(format)" }).answers
                let target = web.target(format, "/a.gif")
                let accepted = try await web.request("GET", target, headers: ["Prefer: respond-async"])
                #expect(accepted.status == 202 && accepted["content-type"] == "application/json")
                try check(accepted, "Status")
                let schema = answers.first { $0.status == 202 }?.content["application/json"]
                #expect(schema == APISchemas.reference("Status"))
                #expect(try await web.request("GET", target).status == 200)
                for range in ["bytes=0-1", "bytes=0-1,5-6"] {
                    let part = try await web.request("GET", target, headers: ["Range: \(range)"])
                    let type = try #require(part["content-type"]?.split(separator: ";").first.map(String.init))
                    // A part of a document has no schema.
                    let schema = answers.first { $0.status == 206 }?.content[type]
                    #expect(part.status == 206 && schema == APISchemas.binary, "\(format): \(type)")
                }
            }
        }
    }

    /// Generated clients take a body for facts wherever the document offers JSON.
    @Test func whatAcceptSelectsIsAnImageOrAVideo() throws {
        let operations = APIOperation.table(try presets()).filter { $0.id.hasPrefix("get_auto") }
        #expect(operations.count == 2)
        let types: Set = [
            "image/avif", "image/gif", "image/jpeg", "image/png", "image/webp", "video/mp4", "video/quicktime", "video/webm",
        ]
        for operation in operations {
            let whole = try #require(operation.answers.first { $0.status == 200 })
            let part = try #require(operation.answers.first { $0.status == 206 })
            #expect(Set(whole.content.keys) == types, "\(operation.path)")
            #expect(Set(part.content.keys) == types.union(["multipart/byteranges"]), "\(operation.path)")
        }
    }

    /// A generated client sends its token only where the document asks for one.
    @Test func eachOperationThatReadsATokenNamesIt() throws {
        let document = OpenAPIDocument.document(try presets(), version: "1", publicURL: nil)
        for operation in APIOperation.table(try presets()) {
            let security = document["paths"]?[operation.path]?[operation.method]?["security"]
            let token: JSONValue = ["token": []]
            if operation.id == "get_metrics" {
                // The address of the client may suffice.
                #expect(security == JSONValue.list([[:], token]) && !operation.needsToken)
            } else if operation.problems.contains(where: { $0.status == 401 }) {
                #expect(security == JSONValue.list([token]) && operation.needsToken, "\(operation.id)")
            } else {
                #expect(security == nil && !operation.needsToken, "\(operation.id)")
            }
        }
    }

    /// Clients of openapi-generator decode any other body as JSON or text.
    @Test func bodiesOfImagesAndVideosAreBytes() throws {
        var types: Set<String> = []
        for operation in APIOperation.table(try presets()) {
            let contents = operation.answers.map(\.content) + [operation.body]
            for (type, schema) in contents.joined()
            where type.hasPrefix("image/") || type.hasPrefix("video/") || type == "multipart/byteranges" {
                types.insert(type)
                #expect(schema == ["type": "string", "format": "binary"], "\(operation.id): \(type)")
            }
        }
        #expect(types.isSuperset(of: ["image/gif", "image/x-icon", "video/mp4", "multipart/byteranges"]))
    }

    @Test func theURLsOfTheModuleWithFactsAreAList() throws {
        let operation = try #require(APIOperation.table(try presets()).first { $0.id == "get_facts_module" })
        let url = try #require(operation.parameters.first { $0.name == "url" })
        #expect(url.schema == ["type": "array", "items": APISchemas.url])
    }

    @Test func whatIsNotStoredIsAmongTheResponses() async throws {
        try await WebFixture.run([:]) { web async throws in
            for operation in APIOperation.table(try presets()) where operation.method == "get" {
                let response = try await web.request("GET", operation.example, headers: ["Cache-Control: only-if-cached"])
                #expect(operation.statuses.contains(response.status), "\(operation.path): \(response.status)")
            }
        }
    }

    @Test func everyReferenceHasASchema() throws {
        let document = OpenAPIDocument.document(try presets(), version: "1", publicURL: nil)
        let text = String(decoding: JSONText.encode(document), as: UTF8.self)
        let references = text.matches(of: /"\$ref":"#\/components\/([A-Za-z]+)\/([^"]+)"/)
        for match in references {
            #expect(document["components"]?[String(match.1)]?[String(match.2)] != nil, "\(match.1) \(match.2)")
        }
        #expect(Set(references.map { String($0.1) }) == ["schemas", "parameters", "requestBodies", "responses"])
    }

    /// Generators of clients ignore such a reference: the errors of a generated client would have no members.
    @Test func noReferenceHasSiblings() throws {
        func check(_ value: JSONValue, _ path: String) {
            switch value {
            case .object(let members):
                #expect(members["$ref"] == nil || members.count == 1, "\(path)")
                for (name, member) in members { check(member, "\(path)/\(name)") }
            case .list(let values):
                for (index, value) in values.enumerated() { check(value, "\(path)/\(index)") }
            default: break
            }
        }
        check(OpenAPIDocument.document(try presets(), version: "1", publicURL: nil), "")
    }

    /// Clients read it at each start of a tool.
    @Test func whatOperationsShareIsWrittenOnce() throws {
        let document = OpenAPIDocument.document(try presets(), version: "1", publicURL: nil)
        #expect(JSONText.encode(document).count < 210_000)
        guard case .object(let responses)? = document["components"]?["responses"] else {
            Issue.record("no shared responses")
            return
        }
        #expect(Set(responses.values).count == responses.count)
    }

    @Test func onlyPagesOfSourcesHaveErrorsAsHTML() throws {
        let operations = APIOperation.table(try presets())
        #expect(Set(operations.filter(\.hasErrorPages).map(\.path)) == ["/html", "/html/{source}", "/{mount}/{path}"])
        let document = OpenAPIDocument.document(try presets(), version: "1", publicURL: nil)
        let response = document["paths"]?["/"]?["get"]?["responses"]?["404"]
        #expect(response?["content"]?["text/html; charset=utf-8"] == nil)
        #expect(operations.first { $0.id == "get_status" }?.parameters.contains { $0.name == "Last-Event-ID" } == true)
    }

    // MARK: Schemas

    /// The faults of a JSON value by a schema, for the keywords that the schemas of the document have.
    private func faults(_ value: Any, _ schema: JSONValue, at path: String = "$") -> [String] {
        if case .text(let reference)? = schema["$ref"] {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let named = APISchemas.named[name] else { return ["\(path): no schema \(name)"] }
            return faults(value, named, at: path)
        }
        if case .list(let schemas)? = schema["allOf"] { return schemas.flatMap { self.faults(value, $0, at: path) } }
        var faults: [String] = []
        if let types = schema["type"] {
            let allowed: [JSONValue] = if case .list(let list) = types { list } else { [types] }
            if !allowed.contains(where: { $0 == .text(Self.type(value)) || $0 == .text("number") && value is NSNumber }) {
                return ["\(path): \(value) is \(Self.type(value))"]
            }
        }
        if case .list(let words)? = schema["enum"], let text = value as? String, !words.contains(.text(text)) {
            faults.append("\(path): \(text) is no value")
        }
        if case .text(let pattern)? = schema["pattern"], let text = value as? String,
            (try? Regex(pattern).firstMatch(in: text)) == nil
        {
            faults.append("\(path): \(text) does not match")
        }
        if case .whole(let least)? = schema["minimum"], let number = value as? NSNumber, number.doubleValue < Double(least) {
            faults.append("\(path): \(number) is too small")
        }
        if let items = schema["items"], let list = value as? [Any] {
            for (index, item) in list.enumerated() { faults += self.faults(item, items, at: "\(path)[\(index)]") }
        }
        guard let members = value as? [String: Any] else { return faults }
        if case .list(let required)? = schema["required"] {
            for case .text(let name) in required where members[name] == nil { faults.append("\(path).\(name) is missing") }
        }
        for (name, member) in members {
            if let known = schema["properties"]?[name] {
                faults += self.faults(member, known, at: "\(path).\(name)")
            } else if schema["additionalProperties"] == .bool(false) {
                faults.append("\(path).\(name) is not known")
            } else if let others = schema["additionalProperties"] {
                faults += self.faults(member, others, at: "\(path).\(name)")
            }
        }
        return faults
    }

    private static func type(_ value: Any) -> String {
        switch value {
        case is NSNull: "null"
        case is String: "string"
        case is [Any]: "array"
        case is [String: Any]: "object"
        case let number as NSNumber:
            CFNumberIsBoolean(number) ? "boolean" : number.doubleValue == number.doubleValue.rounded() ? "integer" : "number"
        default: "unknown"
        }
    }

    private static func CFNumberIsBoolean(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }

    private func check(_ response: RawHTTPResponse, _ schema: String) throws {
        let value = try JSONSerialization.jsonObject(with: Data(response.body))
        let faults = faults(value, APISchemas.reference(schema))
        #expect(faults.isEmpty, "\(schema): \(faults)")
        // The check finds what is wrong.
        #expect(!self.faults(["nonsense": 1], APISchemas.reference(schema)).isEmpty)
    }

    @Test func outcomesOfPrewarmingMatchTheirSchema() throws {
        let results = try #require(APISchemas.named["PrewarmReport"]?["properties"]?["results"])
        let schema = try #require(results["items"]?["properties"]?["outcome"])
        for outcome in [
            PrewarmOutcome(kind: .new, bytes: 3, sourceBytes: 4), PrewarmOutcome(code: "a", detail: "b"),
        ] {
            let value = try JSONSerialization.jsonObject(with: Data(JSONText.encode(outcome)))
            #expect(faults(value, schema).isEmpty, "\(faults(value, schema))")
        }
    }

    @Test func blockedSourcesMatchTheirSchema() throws {
        let found = BlockedSources.Source(url: "https://a.test/a.gif", label: "case 17")
        for part in [BlockedSources(), BlockedSources(blocked: [found], compared: 2, withoutFingerprints: 1, next: found.url)] {
            let value = try JSONSerialization.jsonObject(with: Data(JSONText.encode(part, inSnakeCase: true)))
            let faults = faults(value, APISchemas.reference("Blocked"))
            #expect(faults.isEmpty, "\(faults)")
        }
    }

    @Test func answersMatchTheirSchemas() async throws {
        let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .ok(Self.gif) }]
        let token = ["Authorization: Bearer secret"]
        try await WebFixture.run(paths, { $0.policy.adminToken = "secret" }) { web async throws in
            for format in ["mp4", "jpg"] { #expect(try await web.request("GET", web.target(format, "/a.gif")).status == 200) }
            try check(try await web.request("GET", web.target("json", "/a.gif")), "Facts")
            try check(try await web.request("POST", "/json", body: Self.gif), "Facts")
            try check(try await web.request("GET", "/oembed?url=\(web.origin.url("/a.gif"))"), "OEmbed")
            try check(try await web.request("GET", "/cache", headers: token), "Cache")
            let body = Array(#"[{"url":"\#(web.origin.url("/a.gif"))"},{"url":"nonsense"}]"#.utf8)
            let job = try await web.request("POST", "/prewarm", headers: token, body: body)
            try check(job, "PrewarmAccepted")
            let location = try #require(job["location"])
            let report = try await web.request("GET", "\(location)?from=0", headers: token)
            try check(report, "PrewarmReport")
            try check(try await web.request("DELETE", location, headers: token), "PrewarmReport")
            try check(try await web.request("DELETE", "/cache?all=true", headers: token), "Purged")
            let accepted = try await web.request(
                "GET", web.target("png,width=9", "/a.gif"), headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202)
            let status = try #require(accepted["location"])
            try check(try await web.request("GET", status), "Status")
            #expect(try await web.request("DELETE", status).status == 204)
            let problem = try await web.request("GET", "/mp4/nonsense")
            let schema = APISchemas.problem(ProblemTable.request)
            #expect(faults(try problem.json(), schema).isEmpty)
        }
    }
}
