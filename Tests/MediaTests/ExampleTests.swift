import Foundation
import Testing

@testable import Media

@Suite("The example of the README is what the program makes") struct ExampleTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func bytes(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: Self.root.appendingPathComponent(path)))
    }

    /// 63,054
    private func grouped(_ number: Int) -> String {
        number < 1000 ? "\(number)" : grouped(number / 1000) + "," + String(1000 + number % 1000).dropFirst()
    }

    @Test func theSizesAreThoseOfTheFiles() throws {
        let (gif, mp4) = try (bytes(".assets/plasma.gif").count, bytes(".assets/plasma.mp4").count)
        let percent = (100 * mp4 + gif / 2) / gif
        let readme = String(decoding: try bytes("README.md"), as: UTF8.self)
        let row = "| \(grouped(gif)) bytes | \(grouped(mp4)) bytes (\(percent) %) |"
        #expect(readme.contains(row), "\(row)")
    }

    /// Another version of x264 makes other bytes, but about as many: up to one in fifty more or fewer.
    @Test func theProgramMakesAFileOfThatSize() throws {
        let shipped = try bytes(".assets/plasma.mp4").count
        let made = try Converted(bytes(".assets/plasma.gif")).bytes.count
        #expect(abs(made - shipped) * 50 <= shipped, "\(made) instead of \(shipped) bytes")
    }
}
