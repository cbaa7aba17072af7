import CMedia
import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("The muxer of MP4s takes little memory") struct MP4MuxerTests {
    /// The packets of 100,000 frames would otherwise need their times until the end.
    @Test func theTimesOfDecodedFramesAreDropped() throws {
        let directory = try ScratchDirectory()
        let path = try directory.write("a.mp4", "")
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        var muxer = try MP4Muxer(descriptor: file.fileDescriptor) { parameters in
            parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
            parameters.pointee.codec_id = AV_CODEC_ID_MPEG4
            (parameters.pointee.width, parameters.pointee.height) = (16, 16)
        }
        var most = 0
        for index in 0..<200 {
            muxer.expect(time: 4 * index)
            var packet = av_packet_alloc()
            defer { av_packet_free(&packet) }
            let allocated = try #require(packet)
            try #require(av_new_packet(allocated, 1) == 0)
            allocated.pointee.data[0] = 0
            (allocated.pointee.pts, allocated.pointee.dts) = (Int64(index), Int64(index))
            try muxer.append(allocated)
            most = max(most, muxer.times.count)
        }
        #expect(most == 1)
    }
}
