internal import Fetch
package import Prewarm
internal import Renditions

extension Webhooks {
    /// Sends the report on a finished prewarm job to its callback. Once the receiver has accepted it, or it was given up, the queue
    /// records that; until then, the next start of the server sends it again.
    package func report(_ job: PrewarmJob, of queue: PrewarmQueue) {
        guard let callback = job.order.callback, let url = try? SourceURL(callback) else { return }
        deliver(JSONText.encode(PrewarmReport(job, from: nil)), of: "/prewarm/\(job.order.id)", to: url) {
            queue.noteReported(job)
        }
    }
}
