internal import CAV

/// Which of its machine code x264 is to use.
enum InstructionSet {
    /// What x264's options say of it, with a colon before it; empty where x264 chooses well by itself.
    ///
    /// With AVX-512, x264 (0.164) weighs macroblocks by memory that nothing has written: where B-frames and macroblock trees
    /// meet, the same frames give other bytes from one process to the next (up to 1.5 % more; shown by
    /// glibc's `MALLOC_PERTURB_`, gone with AVX2). An object is named for its bytes and is to be the same wherever it is made. AVX2
    /// is no slower: 4 % faster in the median of 26 GIFs on a processor that has both.
    static let option = isWide(flags: av_get_cpu_flags()) ? ":asm=avx2" : ""

    /// Whether x264 would use AVX-512; not to be told of AVX2 where there is none.
    static func isWide(flags: Int32) -> Bool {
        flags & AV_CPU_FLAG_AVX512 != 0 && flags & AV_CPU_FLAG_AVX2 != 0
    }
}
