import Foundation
import SystemIO
import Testing

@Suite("Whole files are read and replaced by path") struct FilesTests {
    private final class Folder {
        let path: String

        init() throws {
            let url = FileManager.default.temporaryDirectory.appending(path: "gifreel-files-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            path = url.path
        }

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
    }

    @Test func aFileIsReplacedAsAWhole() throws {
        let folder = try Folder()
        let path = folder.path + "/a"
        try Files.write("one", to: path)
        let reader = SharedDescriptor(OwnedDescriptor(taking: open(path, O_RDONLY)))
        try Files.write("twenty-two", to: path)
        #expect(try Files.read(path) == Array("twenty-two".utf8))
        #expect(try reader.readAll() == Array("one".utf8))
        // No temporary file is left.
        #expect(folder.names == ["a"])
        try Files.write("", to: path)
        #expect(try Files.read(path) == [])
    }

    @Test func aFailedWriteLeavesNothing() throws {
        let folder = try Folder()
        #expect(mkdir(folder.path + "/directory", 0o755) == 0)
        let error = #expect(throws: FileError.self) { try Files.write("x", to: folder.path + "/directory") }
        #expect(error?.description.contains("/directory cannot be written: ") == true)
        #expect(folder.names == ["directory"])
        #expect(throws: FileError.self) { try Files.write("x", to: folder.path + "/none/a") }
        let missing = #expect(throws: FileError.self) { try Files.read(folder.path + "/none") }
        #expect(missing?.description == "\(folder.path)/none cannot be read: No such file or directory.")
    }

    @Test func directoriesAreCreatedWithThoseAboveThem() throws {
        let folder = try Folder()
        let path = folder.path + "/a/b/c"
        try Files.createDirectory(path)
        try Files.createDirectory(path)
        #expect(Files.isDirectory(path))
        #expect(Files.exists(path) && !Files.exists(path + "/d"))
        try Files.write("x", to: path + "/file")
        #expect(!Files.isDirectory(path + "/file"))
        let error = #expect(throws: FileError.self) { try Files.createDirectory(path + "/file") }
        #expect(error?.code == ENOTDIR)
        #expect(throws: FileError.self) { try Files.createDirectory(path + "/file/below") }
    }

    @Test(arguments: [("a/b/c", "a/b"), ("c", "."), ("/c", "/"), ("/", "/"), ("a/b/", "a"), ("/a/b", "/a"), ("", ".")])
    func theDirectoryOfAPath(path: String, directory: String) {
        #expect(Files.directory(of: path) == directory)
    }

    @Test func aReplacedFileKeepsItsPermissionsAndItsName() throws {
        let folder = try Folder()
        let (path, link) = (folder.path + "/a", folder.path + "/link")
        try Files.write("one", to: path)
        #expect(chmod(path, 0o640) == 0 && symlink("a", link) == 0)
        try Files.write("two", to: link)
        var status = stat()
        #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
        #expect(lstat(path, &status) == 0 && status.st_mode & 0o7777 == 0o640)
        #expect(try Files.read(path) == Array("two".utf8))
        #expect(folder.names == ["a", "link"])
    }

    @Test func aPipeGetsTheBytesAndStays() throws {
        let folder = try Folder()
        let path = folder.path + "/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        let reader = OwnedDescriptor(taking: open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
        try Files.write("one", to: path)
        var bytes = [UInt8](repeating: 0, count: 8)
        #expect(read(reader.number, &bytes, bytes.count) == 3 && bytes.starts(with: Array("one".utf8)))
        #expect(folder.names == ["pipe"])
    }

    @Test func anAppendedFileGrowsAndTellsItsLastByte() throws {
        let folder = try Folder()
        let path = folder.path + "/log"
        do {
            let file = try AppendedFile(path: path)
            #expect(file.lastByte == nil)
            try file.append(Array("one\n".utf8))
            #expect(file.lastByte == UInt8(ascii: "\n"))
        }
        let file = try AppendedFile(path: path)
        try file.append(Array("two".utf8))
        #expect(file.lastByte == UInt8(ascii: "o"))
        #expect(try Files.read(path) == Array("one\ntwo".utf8))
        #expect(throws: FileError.self) { _ = try AppendedFile(path: folder.path) }
    }
}
