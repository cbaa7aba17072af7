import Testing

@Suite("The scanner of Swift sources behind the structure tests") struct ScannerTests {
    private func names(_ text: String) -> [String] { SwiftScanner.tokens(of: text).map(\.text) }

    @Test func commentsAndLiteralsAreSkippedAndInterpolationsAreCode() {
        #expect(names("a // b\nc /* d /* e */ f */ g") == ["a", "c", "g"])
        #expect(names(#"a("b \" c", "\(d("e")) f") g"#) == ["a", "d", "g"])
        #expect(names("a = #\"b \"c\" \\(d) \\#(e)\"# f") == ["a", "e", "f"])
        #expect(names("\"\"\"\n a \"b\" \\(c)\n \"\"\" d") == ["c", "d"])
        #expect(names("#if os(Linux)\nx0 + 0xAF + 1e9\n#endif") == ["if", "os", "Linux", "x0", "endif"])
    }

    @Test func onlyTopLevelTypesThatAreNotPrivateAreShared() {
        let file = SourceFile(
            path: "Sources/A/B/C.swift",
            text: """
                package final class Outer<Value> { struct Inner { enum Innermost {} } ; class func make() {} }
                private struct Hidden {}
                fileprivate final class Hidden2 {}
                @MainActor protocol Shape: Sendable {}
                typealias Alias = Other.Member
                extension Extended { struct Nested {} }
                """)
        #expect(file.declarations.shared == ["Outer", "Shape", "Alias"])
        #expect(file.declarations.all.isSuperset(of: ["Inner", "Innermost", "Hidden", "Hidden2", "Nested"]))
        #expect(file.uses == ["Value", "MainActor", "Sendable", "Other", "Extended"])
        #expect(file.target == "A" && file.folder(depth: nil) == "B")
    }

    @Test func importsAreReadWhateverStandsBeforeThem() {
        let file = SourceFile(
            path: "Sources/A/B.swift",
            text: """
                internal import Cache
                @testable import Fetch
                import struct Foundation.URL
                // import No
                let a: Other = x.import
                """)
        #expect(file.imports == ["Cache", "Fetch", "Foundation"])
        // A target may have a type with the name of another target.
        #expect(file.uses == ["Other"])
        #expect(file.folder(depth: nil) == nil)
    }

    @Test func aCircleOfFoldersIsFoundWithItsReasons() {
        let tree = SourceTree([
            "Sources/A/Top.swift": "struct Top { var one: One }",
            "Sources/A/First/One.swift": "struct One { let two = Two() }",
            "Sources/A/Second/Two.swift": "struct Two { func three() -> Three? { nil } }",
            "Sources/A/Third/Three.swift": "struct Three { /* Top */ let text = \"\\(One.self)\" }",
            "Sources/A/Third/Four.swift": "struct Four { struct Two {} ; let two: Two }",
        ])
        let graph = tree.folderGraph(of: "A", depth: nil)
        #expect(graph.circles == [["First", "Second", "Third"]])
        #expect(
            graph.reasons(for: ["First", "Second", "Third"]) == [
                "First → Second: Sources/A/First/One.swift uses Two",
                "Second → Third: Sources/A/Second/Two.swift uses Three",
                "Third → First: Sources/A/Third/Three.swift uses One",
            ])
    }

    @Test func aCircleThroughAFileBesideTheFoldersIsFound() {
        let tree = SourceTree([
            "Sources/A/Top.swift": "struct Top { var one: One }", "Sources/A/First/One.swift": "struct One { var top: Top? }",
            "Sources/A/Basics.swift": "struct Basics {}", "Sources/A/First/Two.swift": "struct Two { var basics: Basics }",
        ])
        #expect(tree.folderGraph(of: "A", depth: nil).circles == [["First", "Top.swift"]])
    }

    @Test func nestedFoldersAreJoinedAtALesserDepth() {
        let tree = SourceTree([
            "Sources/A/First/In/One.swift": "struct One { var two: Two }", "Sources/A/Second/Two.swift": "struct Two {}",
            "Sources/A/Second/Three.swift": "struct Three { var four: Four }",
            "Sources/A/First/Out/Four.swift": "struct Four {}",
        ])
        #expect(tree.folderGraph(of: "A", depth: nil).circles.isEmpty)
        #expect(tree.folderGraph(of: "A", depth: 1).circles == [["First", "Second"]])
    }

    @Test func aCircleOfTargetsIsFound() {
        let tree = SourceTree([
            "Sources/A/One.swift": "import B", "Sources/B/Two.swift": "import C\nimport Foundation",
            "Sources/C/Three.swift": "import A", "Sources/D/Four.swift": "import A",
        ])
        #expect(tree.targetGraph.circles == [["A", "B", "C"]])
    }
}
