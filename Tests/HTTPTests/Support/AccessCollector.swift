@testable import HTTP

/// Collects finished requests as text.
struct AccessCollector: HTTPObserver {
    let lines: Shared<[String]>

    func requestsFinished(_ batch: HTTPAccessBatch) {
        batch.forEach { record in
            let texts = [record.method, record.target, record.cacheStatus].map { String(decoding: $0, as: UTF8.self) }
            let client = record.client.map(\.description) ?? "-"
            let line = "\(client) \(texts[0]) \(texts[1]) \(record.status) \(record.bytes) \(record.isComplete) [\(texts[2])]"
            lines.update { $0.append(line) }
        }
    }
}
