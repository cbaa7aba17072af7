import Foundation
import Service
import Media
let a = CommandLine.arguments
let data = [UInt8](try Data(contentsOf: URL(fileURLWithPath: a[2])))
if a[1] == "frames" {
    if let f = try FrameDump.write(data, to: a[3]) { print(f) }
} else {
    let fd = open(a[3], O_RDWR | O_CREAT | O_TRUNC, 0o644)
    let r = try data.withUnsafeBytes { try Transcoder(threads: 2).convert($0, to: fd) }
    print(r)
}
