import Fetch
import Renditions
import Store
import TestSupport
import Testing

@testable import Web

@Suite("Mutated request targets are parsed or refused") struct TargetFuzzTests {
    @Test func theSeedsHoldNoViolation() {
        for seed in TargetSeeds.all { check(seed) }
    }

    @Test func changedTargetsHoldNoViolation() {
        var mutator = ByteMutator(seed: 2, telling: Array("/,=?&%.+:0123456789afmp-_#@\n\0é".utf8))
        for seed in TargetSeeds.all {
            for _ in 0..<300 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { TargetInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

@Suite("Equal renditions have equal keys") struct RenditionKeyTests {
    /// Values of each option, the first in several spellings of the same.
    private static func spellings(_ option: RenditionOption) -> [[String]] {
        switch option {
        case .bg: [["00ff7f", "00FF7F", "00Ff7f"], ["000000"], ["ffffff", "FFFFFF"]]
        case .facts: [["fingerprints"], ["flashes"]]
        case .fit: [["cover"], ["fill"], ["pad"], ["contain"]]
        case .gravity: [["top-left", "0:0", "0.0:00"], ["0.25:1"], ["center", "0.5:0.5"]]
        case .maxBytes: [["1000", "01000"], ["100000000"]]
        case .fps, .speed: [["2.5", "2.50", "02.5", "2.5000"], ["3"], ["1", "1.0"]]
        case .start: [["0.5", "0.50", "00.5"], ["1"], ["0", "0.0"]]
        case .end: [["20.5", "20.50", "020.5"], ["21"], ["30"]]
        case .width, .height: [["40", "040"], ["41"], ["4096"]]
        case .quality: [["7", "07"], ["8"], ["60"]]
        case .loops: [["2", "02"], ["3"], ["1"]]
        case .frame: [["5", "05"], ["6"], ["0"], ["auto"]]
        case .codec: [["av1"], ["h264"]]
        case .preset: [["sticker"]]
        case .undither: [["1"], ["0"], ["auto"]]
        case .bframes: [["0"], ["auto"]]
        case .chroma: [["420"], ["auto"]]
        case .zoom: [["2", "02"], ["8"], ["1"]]
        case .tune: [["film"], ["screen"], ["pixel"], ["auto"]]
        }
    }

    private struct Asked: Hashable {
        var format: Rendition.Format
        /// By option, the number of the value; what is the default is left out.
        var values: [RenditionOption: Int]
        var url: String
    }

    private func isDefault(_ option: RenditionOption, _ value: Int, _ format: Rendition.Format) throws -> Bool {
        var rendition = Rendition(format: format)
        try rendition.set(option.rawValue, to: Self.spellings(option)[value][0])
        return rendition == Rendition(format: format)
    }

    private func key(_ target: String) throws -> AliasKey {
        guard case .rendition(let rendition, let url) = try RouteParser(mounts: [:]).parse(target).route else {
            throw Problem.badRequest("no rendition")
        }
        return AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
    }

    @Test func aCanonicalTargetIsReadAsTheRouteItWasWrittenFrom() throws {
        var random = SeededNumbers(seed: 11)
        let parser = RouteParser(mounts: [:])
        for _ in 0..<2_000 {
            let format = try #require(Rendition.Format.allCases.randomElement(using: &random))
            var rendition = Rendition(format: format)
            for option in RenditionOption.allCases where option.applies(to: format) && Bool.random(using: &random) {
                let value = try #require(Self.spellings(option).joined().randomElement(using: &random))
                try rendition.set(option.rawValue, to: value)
            }
            guard (try? rendition.check()) != nil else { continue }
            let path = ["a.gif", "b.gif?q=1&r=%2F", "%C3%A9,x=y/..a"].randomElement(using: &random) ?? ""
            let source = try SourceURL("https://a.test/\(path)")
            let target = try #require(
                SigningKeys().target(
                    format.rawValue, rendition.canonicalOptions.map { QueryItem(name: $0.name, value: $0.value) }, of: source))
            #expect(target == "/\(rendition.canonicalText)/\(source.canonical)")
            let route = try parser.parse(target).route
            #expect(route == .rendition(rendition, source), "\(target)")
            guard case .rendition(let again, _) = route else { continue }
            #expect(again.canonicalText == rendition.canonicalText)
        }
    }

    @Test func oneMeaningHasOneKeyAndTwoMeaningsHaveTwo() throws {
        var random = SeededNumbers(seed: 3)
        var meanings: [AliasKey: Asked] = [:]
        var keys: [Asked: AliasKey] = [:]
        for _ in 0..<4_000 {
            let format = try #require(Rendition.Format.allCases.randomElement(using: &random))
            let applying = RenditionOption.allCases.filter { $0.applies(to: format) }.shuffled(using: &random)
            var options: [(RenditionOption, Int)] = []
            for option in applying where Bool.random(using: &random) {
                options.append((option, Int.random(in: 0..<Self.spellings(option).count, using: &random)))
            }
            let hasBothSides = [RenditionOption.width, .height].allSatisfy { side in options.contains { $0.0 == side } }
            if !hasBothSides { options.removeAll { $0.0 == .fit } }
            let crops = options.contains { $0.0 == .fit && Self.spellings(.fit)[$0.1][0] == "cover" }
            if !crops { options.removeAll { $0.0 == .gravity } }
            if options.contains(where: { $0.0 == .preset }) {
                options.removeAll { [.width, .height, .fit, .gravity, .loops, .maxBytes, .zoom].contains($0.0) }
            }
            if options.contains(where: { $0.0 == .zoom }) {
                options.removeAll { [.width, .height, .fit, .gravity].contains($0.0) }
            }
            let path = ["a.gif", "b.gif", "a.gif?quality=7", "a.gif,quality=7"].randomElement(using: &random) ?? ""
            let url = "http://a.test/\(path)"
            let texts = options.map { "\($0.0.rawValue)=\(Self.spellings($0.0)[$0.1].randomElement(using: &random) ?? "")" }
            let encoded = url.replacing("?", with: "%3F")
            let target =
                switch Int.random(in: 0..<3, using: &random) {
                case 0: "/" + ([format.rawValue] + texts).joined(separator: ",") + "/\(url)"
                case 1: "/\(format.rawValue)?" + (texts + ["url=\(encoded)"]).shuffled(using: &random).joined(separator: "&")
                default:
                    "/" + ([format.rawValue] + texts.prefix(1)).joined(separator: ",") + "?url=\(encoded)"
                        + texts.dropFirst().map { "&" + $0 }.joined()
                }
            var asked = Asked(format: format, values: [:], url: url)
            for (option, value) in options where try !isDefault(option, value, format) { asked.values[option] = value }
            let key = try key(target)
            #expect(meanings[key] ?? asked == asked, "\(target)")
            #expect(keys[asked] ?? key == key, "\(target)")
            meanings[key] = asked
            keys[asked] = key
        }
        #expect(keys.count > 1_000 && keys.count < 3_990)
    }
}
