import CLinux
import CSystemCalls
import Foundation
import Glibc
import TestSupport
import Testing

@testable import SystemIO

@Suite("A file of the user is written as a whole, and nothing else stays in its directory") struct OutputFileTests {
    /// Whether temporary files can be without a name.
    private static let hasUnnamedFiles: Bool = {
        let number = clinux_open_tmpfile(FileManager.default.temporaryDirectory.path, 0o600)
        if number >= 0 { close(number) }
        return number >= 0
    }()

    private func write(_ text: String, to file: OutputFile) throws {
        try DescriptorIO.write(Array(text.utf8), to: file.descriptor.number)
    }

    @Test(.enabled(if: hasUnnamedFiles, "The file system has no files without a name."), arguments: [false, true])
    func nothingNewIsInTheDirectoryBeforeTheFileIsComplete(replaces: Bool) throws {
        let folder = try ScratchDirectory()
        if replaces { try folder.write("a", "old") }
        let before = folder.names()
        let file = try OutputFile(folder.path("a"))
        try write("new", to: file)
        // A process that is killed now leaves this.
        #expect(folder.names() == before)
        try file.complete()
        #expect(folder.names() == ["a"])
        #expect(try folder.text("a") == "new")
    }

    @Test(arguments: [true, false]) func aFileThatIsGivenUpLeavesNothing(mayBeUnnamed: Bool) throws {
        let folder = try ScratchDirectory()
        let file = try OutputFile(folder.path("a"), mayBeUnnamed: mayBeUnnamed)
        try write("new", to: file)
        file.discard()
        #expect(folder.names().isEmpty)
    }

    @Test(arguments: [true, false]) func aFileThatCannotTakeItsPlaceLeavesNothing(mayBeUnnamed: Bool) throws {
        let folder = try ScratchDirectory()
        let file = try OutputFile(folder.path("a"), mayBeUnnamed: mayBeUnnamed)
        try folder.write("a/b", "another program's")
        #expect(throws: SystemError("rename", code: EISDIR)) { try file.complete() }
        file.discard()
        #expect(folder.names() == ["a"] && folder.names(in: "a") == ["b"])
    }

    @Test(arguments: [true, false]) func theLongestNameIsWrittenAndReplaced(mayBeUnnamed: Bool) throws {
        let folder = try ScratchDirectory()
        let name = String(repeating: "n", count: 255)
        for text in ["one", "two"] {
            let file = try OutputFile(folder.path(name), mayBeUnnamed: mayBeUnnamed)
            try write(text, to: file)
            try file.complete()
            #expect(try folder.text(name) == text)
        }
        #expect(folder.names() == [name])
    }

    /// AppArmor may refuse to name a file that has no name.
    @Test(arguments: [ENOENT, EACCES, EPERM]) func aFileIsWrittenThatCouldGetNoNameLater(_ code: Int32) throws {
        let folder = try ScratchDirectory()
        let path = folder.path("a")
        // The filter of system calls ends with the thread.
        let isWritten = try atOnce(1) { _ in
            csystemcalls_refuse(Int32(bitPattern: csystemcalls_linkat.rawValue), code) == 0
                && (try? Files.write("new", to: path)) != nil
        }[0]
        #expect(isWritten)
        #expect(folder.names() == ["a"])
        #expect(try folder.text("a") == "new")
    }

    @Test func aPathThatNoFileCanHaveIsRefusedAtOnce() throws {
        let folder = try ScratchDirectory()
        let name = String(repeating: "n", count: 256)
        #expect(throws: SystemError("stat", code: ENAMETOOLONG)) { _ = try OutputFile(folder.path(name)) }
        #expect(throws: SystemError("open", code: EISDIR)) { _ = try OutputFile(folder.path("a/")) }
        #expect(throws: SystemError("open", code: ENOENT)) { _ = try OutputFile(folder.path("none/a")) }
        #expect(folder.names().isEmpty)
    }

    @Test(arguments: [true, false]) func aReplacedFileKeepsItsPermissions(mayBeUnnamed: Bool) throws {
        let folder = try ScratchDirectory()
        let path = try folder.write("a", "old")
        try #require(chmod(path, 0o604) == 0)
        let file = try OutputFile(path, mayBeUnnamed: mayBeUnnamed)
        try write("new", to: file)
        try file.complete()
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == 0o604)
        #expect(try folder.text("a") == "new")
    }
}
