/// A fault that a test injects into a worker. Release builds ignore it.
package enum WorkerFault: Int, Sendable, CaseIterable {
    // Terminations, by stage.
    case killedWhenBegun = 1
    case noThreads
    case killedWhenConfined
    case killedWhenConverted
    case killedWhenReplied
    case silentEnd

    // Violations of the protocol and false claims.
    case noMessage
    case shortMessage
    case unknownMessage
    case twoReplies
    case flood
    case progressFlood
    case absurdProgress
    case progressAfterReply
    case forgedExit
    case sentDescriptor
    case emptyMessageWithDescriptor
    case hang
    case spin
    case wrongLength
    case wrongSize
    case wrongDuration
    case wrongSampleCount
    case absurdSourceWidth
    case absurdSourceHeight
    case absurdLoopCount
    case negativeFailureValue
    case shortFile
    case garbledFile
    case foreignFile

    // Attempts to leave the sandbox.
    case openFile
    case makeFile
    case readProc
    case connect
    case execute
    case trace
    case signalParent
    case fork
    case mapCode
    case writeChannelAsFile
    case threads
}
