import Foundation
import TestSupport
import Testing

@testable import Settings

@Suite("Settings files violate no invariant") final class SettingsFileFuzzTests {
    private let path = FileManager.default.temporaryDirectory.appendingPathComponent("settings-\(UUID().uuidString).yaml").path

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @Test func seedsViolateNoInvariant() throws {
        for seed in SettingsFileSeeds.all + [Array(SettingsDocument.yaml.text.utf8)] { try check(seed) }
    }

    @Test func mutatedFilesViolateNoInvariant() throws {
        var mutator = ByteMutator(seed: 23, telling: Array(":-#&*!|>'\"%@`{}[], \n\t?~.0aé".utf8))
        for seed in SettingsFileSeeds.all {
            for _ in 0..<50 { try check(mutator.mutate(seed)) }
        }
    }

    /// The reader of all settings takes the same bytes from a file. It may refuse values, in a sentence.
    private func check(_ input: [UInt8]) throws {
        let text = String(decoding: input, as: UTF8.self).debugDescription
        let violation = input.withUnsafeBytes { SettingsFileInvariants.violation($0) }
        #expect(violation == nil, "\(text)")
        try Data(input).write(to: URL(fileURLWithPath: path))
        do throws(SettingsError) {
            _ = try SettingsReader.read(file: path, environment: [:], flags: [])
        } catch {
            #expect(error.description.last == "." || error.description.last == "?", "\(text): \(error)")
        }
    }
}
