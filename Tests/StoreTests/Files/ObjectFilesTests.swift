import CSystemCalls
import Glibc
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Files of renditions get their names in one step") struct ObjectFilesTests {
    let temporary: TemporaryDirectory
    let directory: CacheDirectory

    init() throws {
        temporary = try TemporaryDirectory()
        directory = try CacheDirectory(path: temporary.path + "/a/b")
    }

    private func staged(_ bytes: [UInt8]) throws -> StagedFile {
        let staged = try directory.objects.createStaged()
        try DescriptorIO.write(bytes, to: staged.number, at: 0)
        return staged
    }

    /// Creates a file as on a file system without unnamed files.
    private func named(_ bytes: [UInt8]) throws -> StagedFile {
        let name = StagedFile.uniqueName()
        try temporary.create("a/b/staging/\(name)", bytes)
        let path = temporary.path + "/a/b/staging/\(name)"
        return StagedFile(
            SharedDescriptor(try openDescriptor(path, below: AT_FDCWD, flags: O_RDWR)), in: directory.objects, name: name)
    }

    private func bytes(_ name: RenditionName) throws -> [UInt8] {
        try directory.objects.open(name).readAll()
    }

    @Test func aLinkedFileHasItsNameAndAnUnlinkedOneNone() throws {
        let name = RenditionName.test("a")
        #expect(try directory.objects.length(name) == nil)
        #expect(throws: SystemError.self) { try directory.objects.open(name) }
        let file = try staged([1, 2, 3])
        #expect(temporary.files("a/b/objects").isEmpty)
        try directory.objects.link(file, as: name)
        try directory.objects.syncNames(beside: name)
        #expect(try bytes(name) == [1, 2, 3])
        #expect(try directory.objects.length(name) == 3)
        let hex = name.id.description
        #expect(temporary.files("a/b/objects").contains("\(hex.prefix(2))/\(hex.dropFirst(2)).mp4"))
        #expect(try directory.objects.remove(name))
        #expect(try !directory.objects.remove(name))
        #expect(throws: SystemError.self) { try directory.objects.open(name) }
    }

    @Test func aLinkNeverReplacesAFile() throws {
        let name = RenditionName.test("a")
        try directory.objects.link(try staged([1]), as: name)
        let reader = try directory.objects.open(name)
        let error = #expect(throws: SystemError.self) {
            try directory.objects.link(try staged([2]), as: name)
        }
        #expect(error?.code == EEXIST)
        #expect(try bytes(name) == [1])
        try directory.objects.remove(name)
        try directory.objects.link(try staged([3]), as: name)
        #expect(try bytes(name) == [3])
        // A reader of the removed file is not affected.
        #expect(try reader.readAll() == [1])
        #expect(temporary.files("a/b/staging").isEmpty)
    }

    @Test func aStagedFileWithANameIsRemovedUnlessItIsPublished() throws {
        var file: StagedFile? = try named([7])
        let name = RenditionName.test("a")
        try directory.objects.link(try #require(file), as: name)
        #expect(try bytes(name) == [7])
        file = nil
        #expect(temporary.files("a/b/staging").isEmpty)
        #expect(try bytes(name) == [7])
    }

    /// AppArmor may refuse the name, because it judges the file by a path that it does not have.
    @Test(arguments: [ENOENT, EACCES, EPERM]) func aStagedFileHasANameIfItCannotGetOneLater(_ code: Int32) throws {
        let path = temporary.path + "/c"
        // The filter of system calls ends with the thread.
        let staged = try atOnce(1) { _ -> StagedFile? in
            guard csystemcalls_refuse(Int32(bitPattern: csystemcalls_linkat.rawValue), code) == 0 else { return nil }
            return try? CacheDirectory(path: path).objects.createStaged()
        }[0]
        let file = try #require(staged)
        #expect(temporary.files("c/staging") == [try #require(file.name)])
        try DescriptorIO.write([1], to: file.number, at: 0)
        let files = try #require(file.files)
        try files.link(file, as: .test("a"))
        #expect(try files.open(.test("a")).readAll() == [1])
    }

    /// As on exFAT and some network file systems.
    @Test(arguments: [EPERM, EACCES, ENOSYS, EOPNOTSUPP]) func aFileIsRenamedWhereThereAreNoHardLinks(_ code: Int32) throws {
        let files = try [[1], [2]].map(named)
        let (objects, name) = (directory.objects, RenditionName.test("a"))
        // The filter of system calls ends with the thread.
        let outcomes = try atOnce(1) { _ -> [Int32] in
            guard csystemcalls_refuse(Int32(bitPattern: csystemcalls_linkat.rawValue), code) == 0 else { return [] }
            return files.map { file -> Int32 in
                do throws(SystemError) {
                    try objects.link(file, as: name)
                    return 0
                } catch {
                    return error.code
                }
            }
        }[0]
        #expect(outcomes == [0, EEXIST])
        #expect(try bytes(name) == [1])
        #expect(temporary.files("a/b/staging").count == 1)
        withExtendedLifetime(files) {}
    }

    /// As on old CIFS and vboxsf.
    @Test(arguments: [EINVAL, ENOSYS, EOPNOTSUPP, EIO, ENOSPC])
    func aFileIsStoredWhereDirectoriesCannotBeSynced(_ code: Int32) throws {
        let file = try staged([1])
        let (directory, name) = (self.directory, RenditionName.test("a"))
        // The filter of system calls ends with the thread.
        let codes = try atOnce(1) { _ -> [Int32] in
            guard csystemcalls_refuse(Int32(bitPattern: csystemcalls_fsync.rawValue), code) == 0 else { return [] }
            let steps: [() throws -> Void] = [
                { try directory.objects.link(file, as: name) },
                { try directory.objects.syncNames(beside: name) },
                { try directory.syncNames() },
            ]
            return steps.map { step in
                do {
                    try step()
                    return 0
                } catch {
                    return (error as? SystemError)?.code ?? -1
                }
            }
        }[0]
        let isFailure = [EIO, ENOSPC].contains(code)
        #expect(codes == [Int32](repeating: isFailure ? code : 0, count: 3))
        if !isFailure { #expect(try bytes(name) == [1]) }
    }

    @Test func aStagedFileIsTakenOnce() throws {
        let file = try staged([1])
        #expect(!file.isInMemory)
        #expect(file.take())
        #expect(!file.take())
        #expect(Set((0..<100).map { _ in StagedFile.uniqueName() }).count == 100)
    }

    @Test func aListingDistinguishesRenditionsFromOtherFiles() throws {
        let name = RenditionName.test("a")
        try directory.objects.link(try staged([1]), as: name)
        let folder = String(name.id.description.prefix(2))
        let rest = String(name.id.description.dropFirst(2))
        let others = [
            "\(rest)", "\(rest).mp4.part", "\(rest).MP4", "\(rest.uppercased()).mp4", "\(rest.dropLast()).mp4", "x.mp4", ".y",
        ]
        for other in others { try temporary.create("a/b/objects/\(folder)/\(other)", [1]) }
        let (renditions, found) = try directory.objects.list(name.id.bytes[0])
        #expect(renditions == [name])
        #expect(found.sorted() == others.map { "\(folder)/\($0)" }.sorted())
        for path in found { try directory.objects.removeOther(path) }
        #expect(try directory.objects.list(name.id.bytes[0]).others.isEmpty)
        #expect(try bytes(name) == [1])
        let (none, noOthers) = try directory.objects.list(name.id.bytes[0] &+ 1)
        #expect(none.isEmpty && noOthers.isEmpty)
    }

    @Test func theReserveTakesSpaceUntilItIsGivenUp() throws {
        for _ in 0..<2 {
            directory.keepReserve(leaving: 1 << 60)
            #expect(!temporary.files("a/b").contains("reserve"))
            directory.keepReserve(leaving: 0)
            directory.keepReserve(leaving: 0)
            #expect(try temporary.contents("a/b/reserve").count == 4 << 20)
            directory.giveUpReserve()
            directory.giveUpReserve()
            #expect(!temporary.files("a/b").contains("reserve"))
        }
        #expect(directory.path(of: "x") == temporary.path + "/a/b/x")
        #expect(try directory.space().freeBytes > 0)
    }

    @Test func aMovedDirectoryIsNoticed() throws {
        #expect(directory.isInPlace)
        #expect(rename(temporary.path + "/a/b", temporary.path + "/a/c") == 0)
        #expect(!directory.isInPlace)
        // The open directory is still used, so nothing is ever written into another one at its path.
        try directory.objects.link(try staged([9]), as: .test("a"))
        #expect(try bytes(.test("a")) == [9])
        #expect(rename(temporary.path + "/a/c", temporary.path + "/a/b") == 0)
        #expect(directory.isInPlace)
    }
}
