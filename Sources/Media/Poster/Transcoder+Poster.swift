internal import CAV

extension Transcoder {
    /// Makes a poster: frames are read and decoded up to the one that is wanted, and no further.
    func makePoster(_ gif: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) -> TranscodeResult {
        var walk = try FrameWalk(gif, limits: limits)
        while walk.frames <= options.frame, try walk.next() {}
        guard walk.frames > 0 else { throw .incomplete }
        let (width, height) = (walk.canvas.width, walk.canvas.height)
        let geometry = PictureGeometry(width: width, height: height, options: options.size)
        let picture = try StillPicture(walk.canvas, geometry, background: output == .jpg ? options.background : nil)
        var bytes = 0
        try PosterEncoder.encode(picture, as: output, quality: options.quality) { file throws(TranscodeError) in
            try FileOutput.write(file, to: descriptor)
            bytes = file.count
        }
        return TranscodeResult(
            sourceWidth: width, sourceHeight: height, width: picture.width, height: picture.height,
            frames: walk.frames, samples: 1, duration: 0, loopCount: walk.loopCount, isTransparent: picture.hasTransparency,
            bytes: bytes)
    }
}
