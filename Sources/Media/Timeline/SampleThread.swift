internal import Synchronization
internal import SystemIO

/// A ``SampleSource`` on a thread of its own: while a sample is encoded, the next one is decoded and composed, and it is
/// converted as soon as the encoder's side has taken the one before.
///
/// One other thread may use it. To be stopped before what the source reads from goes away.
final class SampleThread<Decoder: AnimationDecoder & ~Copyable>: @unchecked Sendable {
    // The thread's until it signals `ready`, the other side's until that signals `taken`.
    private let source: SampleSource<Decoder>
    private let luma: SamplePlane
    private let cb: SamplePlane
    private let cr: SamplePlane
    private var outcome: Result<Sample?, TranscodeError> = .success(nil)

    private let ready = Semaphore()
    private let taken = Semaphore(value: 1)
    private let isStopped = Atomic(false)
    private var thread: SystemThread?

    /// Starts the thread; nil where there is no room for another, and the source is as it was.
    init?(_ source: SampleSource<Decoder>) {
        guard let luma = try? SamplePlane(width: source.width, height: source.height),
            let cb = try? SamplePlane(width: source.width / 2, height: source.height / 2),
            let cr = try? SamplePlane(width: source.width / 2, height: source.height / 2)
        else { return nil }
        self.source = source
        self.luma = luma
        self.cb = cb
        self.cr = cr
        thread = SystemThread.start(name: "gifreel-decode") { self.run() }
        if thread == nil { return nil }
    }

    /// Waits for the next sample and writes its picture into the planes, which hold the sample before; nil where no more
    /// come. Not to be called again after that, or after an error.
    func next(into planes: PixelConverter.Planes) throws(TranscodeError) -> Sample? {
        ready.wait()
        guard let sample = try outcome.get() else { return nil }
        planes.copy(sample.area, from: own, width: source.width, height: source.height)
        taken.signal()
        return sample
    }

    /// Ends the thread, if need be between two frames, and waits for its end.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        taken.signal()
        thread?.join()
        thread = nil
    }

    private var own: PixelConverter.Planes {
        PixelConverter.Planes(
            luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
            crStride: cr.stride)
    }

    private func run() {
        var meter = NoMeter()
        var isLast = false
        while !isLast, !isStopped.load(ordering: .relaxed) {
            var isOurs = false
            func claim() {
                if !isOurs { taken.wait() }
                isOurs = true
            }
            let result: Result<Sample?, TranscodeError>
            do throws(TranscodeError) {
                let sample = try source.next(&meter) {
                    claim()
                    return own
                }
                isLast = sample == nil
                result = .success(sample)
            } catch {
                isLast = true
                result = .failure(error)
            }
            // The end may come without a picture.
            claim()
            outcome = result
            ready.signal()
        }
    }
}

extension PixelConverter.Planes {
    /// Copies what a rectangle covers, to whole 2×2 blocks, from planes of the same even size.
    func copy(_ area: Rectangle, from other: PixelConverter.Planes, width: Int, height: Int) {
        let left = max(0, area.x & ~1)
        let top = max(0, area.y & ~1)
        let columns = min(width, (area.maxX + 1) & ~1) - left
        let bottom = min(height, (area.maxY + 1) & ~1)
        guard columns > 0, bottom > top else { return }
        for y in top..<bottom {
            (luma + y * lumaStride + left).update(from: other.luma + y * other.lumaStride + left, count: columns)
        }
        for y in top / 2..<bottom / 2 {
            (cb + y * cbStride + left / 2).update(from: other.cb + y * other.cbStride + left / 2, count: columns / 2)
            (cr + y * crStride + left / 2).update(from: other.cr + y * other.crStride + left / 2, count: columns / 2)
        }
    }
}
