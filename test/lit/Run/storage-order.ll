; ModuleID = 'tilus'
source_filename = "tilus"
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: nounwind memory(argmem: readwrite)
define ptx_kernel void @storage_order(ptr addrspace(1) readonly align 1 captures(none) %w, ptr addrspace(1) writeonly align 4 captures(none) %words, ptr addrspace(1) writeonly align 2 captures(none) %x, ptr addrspace(1) writeonly align 1 captures(none) %casts, ptr addrspace(1) writeonly align 1 captures(none) %bits) local_unnamed_addr #0 {
entry:
  %0 = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %1 = shl nuw nsw i32 %0, 1
  %2 = and i32 %1, 30
  %3 = shl nuw nsw i32 %0, 2
  %4 = and i32 %3, 4032
  %5 = or disjoint i32 %4, %2
  %6 = zext nneg i32 %5 to i64
  %7 = lshr exact i64 %6, 1
  %8 = getelementptr i8, ptr addrspace(1) %w, i64 %7
  %9 = load i8, ptr addrspace(1) %8, align 1
  %10 = zext i8 %9 to i32
  %11 = getelementptr i8, ptr addrspace(1) %8, i64 16
  %12 = load i8, ptr addrspace(1) %11, align 1
  %13 = zext i8 %12 to i32
  %14 = shl nuw nsw i32 %13, 8
  %15 = getelementptr i8, ptr addrspace(1) %8, i64 128
  %16 = load i8, ptr addrspace(1) %15, align 1
  %17 = zext i8 %16 to i32
  %18 = shl nuw nsw i32 %17, 16
  %19 = getelementptr i8, ptr addrspace(1) %8, i64 144
  %20 = load i8, ptr addrspace(1) %19, align 1
  %21 = zext i8 %20 to i32
  %22 = shl nuw i32 %21, 24
  %23 = or disjoint i32 %14, %18
  %24 = or disjoint i32 %23, %22
  %25 = or disjoint i32 %24, %10
  %26 = getelementptr i8, ptr addrspace(1) %8, i64 256
  %27 = load i8, ptr addrspace(1) %26, align 1
  %28 = zext i8 %27 to i32
  %29 = getelementptr i8, ptr addrspace(1) %8, i64 272
  %30 = load i8, ptr addrspace(1) %29, align 1
  %31 = zext i8 %30 to i32
  %32 = shl nuw nsw i32 %31, 8
  %33 = getelementptr i8, ptr addrspace(1) %8, i64 384
  %34 = load i8, ptr addrspace(1) %33, align 1
  %35 = zext i8 %34 to i32
  %36 = shl nuw nsw i32 %35, 16
  %37 = getelementptr i8, ptr addrspace(1) %8, i64 400
  %38 = load i8, ptr addrspace(1) %37, align 1
  %39 = zext i8 %38 to i32
  %40 = shl nuw i32 %39, 24
  %41 = or disjoint i32 %32, %36
  %42 = or disjoint i32 %41, %40
  %43 = or disjoint i32 %42, %28
  %44 = getelementptr i8, ptr addrspace(1) %8, i64 512
  %45 = load i8, ptr addrspace(1) %44, align 1
  %46 = zext i8 %45 to i32
  %47 = getelementptr i8, ptr addrspace(1) %8, i64 528
  %48 = load i8, ptr addrspace(1) %47, align 1
  %49 = zext i8 %48 to i32
  %50 = shl nuw nsw i32 %49, 8
  %51 = getelementptr i8, ptr addrspace(1) %8, i64 640
  %52 = load i8, ptr addrspace(1) %51, align 1
  %53 = zext i8 %52 to i32
  %54 = shl nuw nsw i32 %53, 16
  %55 = getelementptr i8, ptr addrspace(1) %8, i64 656
  %56 = load i8, ptr addrspace(1) %55, align 1
  %57 = zext i8 %56 to i32
  %58 = shl nuw i32 %57, 24
  %59 = or disjoint i32 %50, %54
  %60 = or disjoint i32 %59, %58
  %61 = or disjoint i32 %60, %46
  %62 = getelementptr i8, ptr addrspace(1) %8, i64 768
  %63 = load i8, ptr addrspace(1) %62, align 1
  %64 = zext i8 %63 to i32
  %65 = getelementptr i8, ptr addrspace(1) %8, i64 784
  %66 = load i8, ptr addrspace(1) %65, align 1
  %67 = zext i8 %66 to i32
  %68 = shl nuw nsw i32 %67, 8
  %69 = getelementptr i8, ptr addrspace(1) %8, i64 896
  %70 = load i8, ptr addrspace(1) %69, align 1
  %71 = zext i8 %70 to i32
  %72 = shl nuw nsw i32 %71, 16
  %73 = getelementptr i8, ptr addrspace(1) %8, i64 912
  %74 = load i8, ptr addrspace(1) %73, align 1
  %75 = zext i8 %74 to i32
  %76 = shl nuw i32 %75, 24
  %77 = or disjoint i32 %68, %72
  %78 = or disjoint i32 %77, %76
  %79 = or disjoint i32 %78, %64
  %80 = zext nneg i32 %3 to i64
  %81 = shl nuw nsw i64 %80, 2
  %82 = getelementptr i8, ptr addrspace(1) %words, i64 %81
  store i32 %25, ptr addrspace(1) %82, align 4
  %83 = getelementptr i8, ptr addrspace(1) %82, i64 4
  store i32 %43, ptr addrspace(1) %83, align 4
  %84 = getelementptr i8, ptr addrspace(1) %82, i64 8
  store i32 %61, ptr addrspace(1) %84, align 4
  %85 = getelementptr i8, ptr addrspace(1) %82, i64 12
  store i32 %79, ptr addrspace(1) %85, align 4
  %86 = and i32 %10, 15
  %87 = or disjoint i32 %86, 1258291200
  %88 = bitcast i32 %87 to float
  %89 = fadd float %88, 0xC160000000000000
  %90 = insertelement <2 x float> poison, float %89, i64 0
  %91 = lshr i32 %10, 4
  %92 = or disjoint i32 %91, 1258291200
  %93 = bitcast i32 %92 to float
  %94 = fadd float %93, 0xC160000000000000
  %95 = insertelement <2 x float> %90, float %94, i64 1
  %96 = fptrunc <2 x float> %95 to <2 x half>
  %97 = and i32 %13, 15
  %98 = or disjoint i32 %97, 1258291200
  %99 = bitcast i32 %98 to float
  %100 = fadd float %99, 0xC160000000000000
  %101 = insertelement <2 x float> poison, float %100, i64 0
  %102 = lshr i32 %13, 4
  %103 = or disjoint i32 %102, 1258291200
  %104 = bitcast i32 %103 to float
  %105 = fadd float %104, 0xC160000000000000
  %106 = insertelement <2 x float> %101, float %105, i64 1
  %107 = fptrunc <2 x float> %106 to <2 x half>
  %108 = and i32 %17, 15
  %109 = or disjoint i32 %108, 1258291200
  %110 = bitcast i32 %109 to float
  %111 = fadd float %110, 0xC160000000000000
  %112 = insertelement <2 x float> poison, float %111, i64 0
  %113 = lshr i32 %17, 4
  %114 = or disjoint i32 %113, 1258291200
  %115 = bitcast i32 %114 to float
  %116 = fadd float %115, 0xC160000000000000
  %117 = insertelement <2 x float> %112, float %116, i64 1
  %118 = fptrunc <2 x float> %117 to <2 x half>
  %119 = and i32 %21, 15
  %120 = or disjoint i32 %119, 1258291200
  %121 = bitcast i32 %120 to float
  %122 = fadd float %121, 0xC160000000000000
  %123 = insertelement <2 x float> poison, float %122, i64 0
  %124 = lshr i32 %21, 4
  %125 = or disjoint i32 %124, 1258291200
  %126 = bitcast i32 %125 to float
  %127 = fadd float %126, 0xC160000000000000
  %128 = insertelement <2 x float> %123, float %127, i64 1
  %129 = fptrunc <2 x float> %128 to <2 x half>
  %130 = and i32 %28, 15
  %131 = or disjoint i32 %130, 1258291200
  %132 = bitcast i32 %131 to float
  %133 = fadd float %132, 0xC160000000000000
  %134 = insertelement <2 x float> poison, float %133, i64 0
  %135 = lshr i32 %28, 4
  %136 = or disjoint i32 %135, 1258291200
  %137 = bitcast i32 %136 to float
  %138 = fadd float %137, 0xC160000000000000
  %139 = insertelement <2 x float> %134, float %138, i64 1
  %140 = fptrunc <2 x float> %139 to <2 x half>
  %141 = and i32 %31, 15
  %142 = or disjoint i32 %141, 1258291200
  %143 = bitcast i32 %142 to float
  %144 = fadd float %143, 0xC160000000000000
  %145 = insertelement <2 x float> poison, float %144, i64 0
  %146 = lshr i32 %31, 4
  %147 = or disjoint i32 %146, 1258291200
  %148 = bitcast i32 %147 to float
  %149 = fadd float %148, 0xC160000000000000
  %150 = insertelement <2 x float> %145, float %149, i64 1
  %151 = fptrunc <2 x float> %150 to <2 x half>
  %152 = and i32 %35, 15
  %153 = or disjoint i32 %152, 1258291200
  %154 = bitcast i32 %153 to float
  %155 = fadd float %154, 0xC160000000000000
  %156 = insertelement <2 x float> poison, float %155, i64 0
  %157 = lshr i32 %35, 4
  %158 = or disjoint i32 %157, 1258291200
  %159 = bitcast i32 %158 to float
  %160 = fadd float %159, 0xC160000000000000
  %161 = insertelement <2 x float> %156, float %160, i64 1
  %162 = fptrunc <2 x float> %161 to <2 x half>
  %163 = and i32 %39, 15
  %164 = or disjoint i32 %163, 1258291200
  %165 = bitcast i32 %164 to float
  %166 = fadd float %165, 0xC160000000000000
  %167 = insertelement <2 x float> poison, float %166, i64 0
  %168 = lshr i32 %39, 4
  %169 = or disjoint i32 %168, 1258291200
  %170 = bitcast i32 %169 to float
  %171 = fadd float %170, 0xC160000000000000
  %172 = insertelement <2 x float> %167, float %171, i64 1
  %173 = fptrunc <2 x float> %172 to <2 x half>
  %174 = and i32 %46, 15
  %175 = or disjoint i32 %174, 1258291200
  %176 = bitcast i32 %175 to float
  %177 = fadd float %176, 0xC160000000000000
  %178 = insertelement <2 x float> poison, float %177, i64 0
  %179 = lshr i32 %46, 4
  %180 = or disjoint i32 %179, 1258291200
  %181 = bitcast i32 %180 to float
  %182 = fadd float %181, 0xC160000000000000
  %183 = insertelement <2 x float> %178, float %182, i64 1
  %184 = fptrunc <2 x float> %183 to <2 x half>
  %185 = and i32 %49, 15
  %186 = or disjoint i32 %185, 1258291200
  %187 = bitcast i32 %186 to float
  %188 = fadd float %187, 0xC160000000000000
  %189 = insertelement <2 x float> poison, float %188, i64 0
  %190 = lshr i32 %49, 4
  %191 = or disjoint i32 %190, 1258291200
  %192 = bitcast i32 %191 to float
  %193 = fadd float %192, 0xC160000000000000
  %194 = insertelement <2 x float> %189, float %193, i64 1
  %195 = fptrunc <2 x float> %194 to <2 x half>
  %196 = and i32 %53, 15
  %197 = or disjoint i32 %196, 1258291200
  %198 = bitcast i32 %197 to float
  %199 = fadd float %198, 0xC160000000000000
  %200 = insertelement <2 x float> poison, float %199, i64 0
  %201 = lshr i32 %53, 4
  %202 = or disjoint i32 %201, 1258291200
  %203 = bitcast i32 %202 to float
  %204 = fadd float %203, 0xC160000000000000
  %205 = insertelement <2 x float> %200, float %204, i64 1
  %206 = fptrunc <2 x float> %205 to <2 x half>
  %207 = and i32 %57, 15
  %208 = or disjoint i32 %207, 1258291200
  %209 = bitcast i32 %208 to float
  %210 = fadd float %209, 0xC160000000000000
  %211 = insertelement <2 x float> poison, float %210, i64 0
  %212 = lshr i32 %57, 4
  %213 = or disjoint i32 %212, 1258291200
  %214 = bitcast i32 %213 to float
  %215 = fadd float %214, 0xC160000000000000
  %216 = insertelement <2 x float> %211, float %215, i64 1
  %217 = fptrunc <2 x float> %216 to <2 x half>
  %218 = and i32 %64, 15
  %219 = or disjoint i32 %218, 1258291200
  %220 = bitcast i32 %219 to float
  %221 = fadd float %220, 0xC160000000000000
  %222 = insertelement <2 x float> poison, float %221, i64 0
  %223 = lshr i32 %64, 4
  %224 = or disjoint i32 %223, 1258291200
  %225 = bitcast i32 %224 to float
  %226 = fadd float %225, 0xC160000000000000
  %227 = insertelement <2 x float> %222, float %226, i64 1
  %228 = fptrunc <2 x float> %227 to <2 x half>
  %229 = and i32 %67, 15
  %230 = or disjoint i32 %229, 1258291200
  %231 = bitcast i32 %230 to float
  %232 = fadd float %231, 0xC160000000000000
  %233 = insertelement <2 x float> poison, float %232, i64 0
  %234 = lshr i32 %67, 4
  %235 = or disjoint i32 %234, 1258291200
  %236 = bitcast i32 %235 to float
  %237 = fadd float %236, 0xC160000000000000
  %238 = insertelement <2 x float> %233, float %237, i64 1
  %239 = fptrunc <2 x float> %238 to <2 x half>
  %240 = and i32 %71, 15
  %241 = or disjoint i32 %240, 1258291200
  %242 = bitcast i32 %241 to float
  %243 = fadd float %242, 0xC160000000000000
  %244 = insertelement <2 x float> poison, float %243, i64 0
  %245 = lshr i32 %71, 4
  %246 = or disjoint i32 %245, 1258291200
  %247 = bitcast i32 %246 to float
  %248 = fadd float %247, 0xC160000000000000
  %249 = insertelement <2 x float> %244, float %248, i64 1
  %250 = fptrunc <2 x float> %249 to <2 x half>
  %251 = and i32 %75, 15
  %252 = or disjoint i32 %251, 1258291200
  %253 = bitcast i32 %252 to float
  %254 = fadd float %253, 0xC160000000000000
  %255 = insertelement <2 x float> poison, float %254, i64 0
  %256 = lshr i32 %75, 4
  %257 = or disjoint i32 %256, 1258291200
  %258 = bitcast i32 %257 to float
  %259 = fadd float %258, 0xC160000000000000
  %260 = insertelement <2 x float> %255, float %259, i64 1
  %261 = fptrunc <2 x float> %260 to <2 x half>
  %262 = shl nuw nsw i64 %6, 1
  %263 = getelementptr i8, ptr addrspace(1) %x, i64 %262
  %264 = getelementptr i8, ptr addrspace(1) %263, i64 2
  %265 = getelementptr i8, ptr addrspace(1) %263, i64 64
  %266 = getelementptr i8, ptr addrspace(1) %263, i64 66
  %267 = getelementptr i8, ptr addrspace(1) %263, i64 512
  %268 = getelementptr i8, ptr addrspace(1) %263, i64 514
  %269 = getelementptr i8, ptr addrspace(1) %263, i64 576
  %270 = getelementptr i8, ptr addrspace(1) %263, i64 578
  %271 = getelementptr i8, ptr addrspace(1) %263, i64 1024
  %272 = getelementptr i8, ptr addrspace(1) %263, i64 1026
  %273 = getelementptr i8, ptr addrspace(1) %263, i64 1088
  %274 = getelementptr i8, ptr addrspace(1) %263, i64 1090
  %275 = getelementptr i8, ptr addrspace(1) %263, i64 1536
  %276 = getelementptr i8, ptr addrspace(1) %263, i64 1538
  %277 = getelementptr i8, ptr addrspace(1) %263, i64 1600
  %278 = getelementptr i8, ptr addrspace(1) %263, i64 1602
  %279 = getelementptr i8, ptr addrspace(1) %263, i64 2048
  %280 = getelementptr i8, ptr addrspace(1) %263, i64 2050
  %281 = getelementptr i8, ptr addrspace(1) %263, i64 2112
  %282 = getelementptr i8, ptr addrspace(1) %263, i64 2114
  %283 = getelementptr i8, ptr addrspace(1) %263, i64 2560
  %284 = getelementptr i8, ptr addrspace(1) %263, i64 2562
  %285 = getelementptr i8, ptr addrspace(1) %263, i64 2624
  %286 = getelementptr i8, ptr addrspace(1) %263, i64 2626
  %287 = getelementptr i8, ptr addrspace(1) %263, i64 3072
  %288 = getelementptr i8, ptr addrspace(1) %263, i64 3074
  %289 = getelementptr i8, ptr addrspace(1) %263, i64 3136
  %290 = getelementptr i8, ptr addrspace(1) %263, i64 3138
  %291 = getelementptr i8, ptr addrspace(1) %263, i64 3584
  %292 = getelementptr i8, ptr addrspace(1) %263, i64 3586
  %293 = getelementptr i8, ptr addrspace(1) %263, i64 3648
  %294 = getelementptr i8, ptr addrspace(1) %263, i64 3650
  %295 = tail call i32 @llvm.nvvm.prmt(i32 %25, i32 %25, i32 0)
  %296 = tail call i32 @llvm.nvvm.prmt(i32 %25, i32 %25, i32 257)
  %297 = tail call i32 @llvm.nvvm.prmt(i32 %25, i32 %25, i32 514)
  %298 = tail call i32 @llvm.nvvm.prmt(i32 %25, i32 %25, i32 771)
  %299 = tail call i32 @llvm.nvvm.prmt(i32 %43, i32 %43, i32 0)
  %300 = tail call i32 @llvm.nvvm.prmt(i32 %43, i32 %43, i32 257)
  %301 = tail call i32 @llvm.nvvm.prmt(i32 %43, i32 %43, i32 514)
  %302 = tail call i32 @llvm.nvvm.prmt(i32 %43, i32 %43, i32 771)
  %303 = tail call i32 @llvm.nvvm.prmt(i32 %61, i32 %61, i32 0)
  %304 = tail call i32 @llvm.nvvm.prmt(i32 %61, i32 %61, i32 257)
  %305 = tail call i32 @llvm.nvvm.prmt(i32 %61, i32 %61, i32 514)
  %306 = tail call i32 @llvm.nvvm.prmt(i32 %61, i32 %61, i32 771)
  %307 = tail call i32 @llvm.nvvm.prmt(i32 %79, i32 %79, i32 0)
  %308 = tail call i32 @llvm.nvvm.prmt(i32 %79, i32 %79, i32 257)
  %309 = tail call i32 @llvm.nvvm.prmt(i32 %79, i32 %79, i32 514)
  %310 = tail call i32 @llvm.nvvm.prmt(i32 %79, i32 %79, i32 771)
  %311 = bitcast <2 x half> %96 to i32
  %312 = bitcast <2 x half> %107 to i32
  %313 = bitcast <2 x half> %118 to i32
  %314 = bitcast <2 x half> %129 to i32
  %315 = bitcast <2 x half> %140 to i32
  %316 = bitcast <2 x half> %151 to i32
  %317 = bitcast <2 x half> %162 to i32
  %318 = bitcast <2 x half> %173 to i32
  %319 = bitcast <2 x half> %184 to i32
  %320 = bitcast <2 x half> %195 to i32
  %321 = bitcast <2 x half> %206 to i32
  %322 = bitcast <2 x half> %217 to i32
  %323 = bitcast <2 x half> %228 to i32
  %324 = bitcast <2 x half> %239 to i32
  %325 = bitcast <2 x half> %250 to i32
  %326 = bitcast <2 x half> %261 to i32
  %327 = and i32 %311, 65535
  %328 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %327) #3
  store i16 %328, ptr addrspace(1) %263, align 2
  %329 = lshr i32 %311, 16
  %330 = lshr i32 %312, 16
  %331 = lshr i32 %313, 16
  %332 = lshr i32 %314, 16
  %333 = lshr i32 %315, 16
  %334 = lshr i32 %316, 16
  %335 = lshr i32 %317, 16
  %336 = lshr i32 %318, 16
  %337 = lshr i32 %319, 16
  %338 = lshr i32 %320, 16
  %339 = lshr i32 %321, 16
  %340 = lshr i32 %322, 16
  %341 = lshr i32 %323, 16
  %342 = lshr i32 %324, 16
  %343 = lshr i32 %325, 16
  %344 = lshr i32 %326, 16
  %345 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %329) #3
  store i16 %345, ptr addrspace(1) %264, align 2
  %346 = and i32 %312, 65535
  %347 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %346) #3
  store i16 %347, ptr addrspace(1) %265, align 2
  %348 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %330) #3
  store i16 %348, ptr addrspace(1) %266, align 2
  %349 = and i32 %313, 65535
  %350 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %349) #3
  store i16 %350, ptr addrspace(1) %267, align 2
  %351 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %331) #3
  store i16 %351, ptr addrspace(1) %268, align 2
  %352 = and i32 %314, 65535
  %353 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %352) #3
  store i16 %353, ptr addrspace(1) %269, align 2
  %354 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %332) #3
  store i16 %354, ptr addrspace(1) %270, align 2
  %355 = and i32 %315, 65535
  %356 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %355) #3
  store i16 %356, ptr addrspace(1) %271, align 2
  %357 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %333) #3
  store i16 %357, ptr addrspace(1) %272, align 2
  %358 = and i32 %316, 65535
  %359 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %358) #3
  store i16 %359, ptr addrspace(1) %273, align 2
  %360 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %334) #3
  store i16 %360, ptr addrspace(1) %274, align 2
  %361 = and i32 %317, 65535
  %362 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %361) #3
  store i16 %362, ptr addrspace(1) %275, align 2
  %363 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %335) #3
  store i16 %363, ptr addrspace(1) %276, align 2
  %364 = and i32 %318, 65535
  %365 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %364) #3
  store i16 %365, ptr addrspace(1) %277, align 2
  %366 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %336) #3
  store i16 %366, ptr addrspace(1) %278, align 2
  %367 = and i32 %319, 65535
  %368 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %367) #3
  store i16 %368, ptr addrspace(1) %279, align 2
  %369 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %337) #3
  store i16 %369, ptr addrspace(1) %280, align 2
  %370 = and i32 %320, 65535
  %371 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %370) #3
  store i16 %371, ptr addrspace(1) %281, align 2
  %372 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %338) #3
  store i16 %372, ptr addrspace(1) %282, align 2
  %373 = and i32 %321, 65535
  %374 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %373) #3
  store i16 %374, ptr addrspace(1) %283, align 2
  %375 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %339) #3
  store i16 %375, ptr addrspace(1) %284, align 2
  %376 = and i32 %322, 65535
  %377 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %376) #3
  store i16 %377, ptr addrspace(1) %285, align 2
  %378 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %340) #3
  store i16 %378, ptr addrspace(1) %286, align 2
  %379 = and i32 %323, 65535
  %380 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %379) #3
  store i16 %380, ptr addrspace(1) %287, align 2
  %381 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %341) #3
  store i16 %381, ptr addrspace(1) %288, align 2
  %382 = and i32 %324, 65535
  %383 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %382) #3
  store i16 %383, ptr addrspace(1) %289, align 2
  %384 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %342) #3
  store i16 %384, ptr addrspace(1) %290, align 2
  %385 = and i32 %325, 65535
  %386 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %385) #3
  store i16 %386, ptr addrspace(1) %291, align 2
  %387 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %343) #3
  store i16 %387, ptr addrspace(1) %292, align 2
  %388 = and i32 %326, 65535
  %389 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %388) #3
  store i16 %389, ptr addrspace(1) %293, align 2
  %390 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %344) #3
  store i16 %390, ptr addrspace(1) %294, align 2
  %391 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %295, i32 15728655, i32 1677747200, i32 106) #3
  %392 = bitcast i32 %391 to <2 x half>
  %393 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %392, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %394 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %296, i32 15728655, i32 1677747200, i32 106) #3
  %395 = bitcast i32 %394 to <2 x half>
  %396 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %395, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %397 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %297, i32 15728655, i32 1677747200, i32 106) #3
  %398 = bitcast i32 %397 to <2 x half>
  %399 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %398, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %400 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %298, i32 15728655, i32 1677747200, i32 106) #3
  %401 = bitcast i32 %400 to <2 x half>
  %402 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %401, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %403 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %299, i32 15728655, i32 1677747200, i32 106) #3
  %404 = bitcast i32 %403 to <2 x half>
  %405 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %404, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %406 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %300, i32 15728655, i32 1677747200, i32 106) #3
  %407 = bitcast i32 %406 to <2 x half>
  %408 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %407, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %409 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %301, i32 15728655, i32 1677747200, i32 106) #3
  %410 = bitcast i32 %409 to <2 x half>
  %411 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %410, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %412 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %302, i32 15728655, i32 1677747200, i32 106) #3
  %413 = bitcast i32 %412 to <2 x half>
  %414 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %413, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %415 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %303, i32 15728655, i32 1677747200, i32 106) #3
  %416 = bitcast i32 %415 to <2 x half>
  %417 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %416, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %418 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %304, i32 15728655, i32 1677747200, i32 106) #3
  %419 = bitcast i32 %418 to <2 x half>
  %420 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %419, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %421 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %305, i32 15728655, i32 1677747200, i32 106) #3
  %422 = bitcast i32 %421 to <2 x half>
  %423 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %422, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %424 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %306, i32 15728655, i32 1677747200, i32 106) #3
  %425 = bitcast i32 %424 to <2 x half>
  %426 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %425, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %427 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %307, i32 15728655, i32 1677747200, i32 106) #3
  %428 = bitcast i32 %427 to <2 x half>
  %429 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %428, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %430 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %308, i32 15728655, i32 1677747200, i32 106) #3
  %431 = bitcast i32 %430 to <2 x half>
  %432 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %431, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %433 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %309, i32 15728655, i32 1677747200, i32 106) #3
  %434 = bitcast i32 %433 to <2 x half>
  %435 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %434, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %436 = tail call i32 asm "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n"(i32 %310, i32 15728655, i32 1677747200, i32 106) #3
  %437 = bitcast i32 %436 to <2 x half>
  %438 = tail call <2 x half> @llvm.fma.v2f16(<2 x half> %437, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> <half 0xHE400, half 0xHD400>)
  %439 = insertelement <32 x i32> poison, i32 %326, i64 0
  %440 = insertelement <32 x i32> %439, i32 %344, i64 1
  %441 = insertelement <32 x i32> %440, i32 %325, i64 2
  %442 = insertelement <32 x i32> %441, i32 %343, i64 3
  %443 = insertelement <32 x i32> %442, i32 %324, i64 4
  %444 = insertelement <32 x i32> %443, i32 %342, i64 5
  %445 = insertelement <32 x i32> %444, i32 %323, i64 6
  %446 = insertelement <32 x i32> %445, i32 %341, i64 7
  %447 = insertelement <32 x i32> %446, i32 %322, i64 8
  %448 = insertelement <32 x i32> %447, i32 %340, i64 9
  %449 = insertelement <32 x i32> %448, i32 %321, i64 10
  %450 = insertelement <32 x i32> %449, i32 %339, i64 11
  %451 = insertelement <32 x i32> %450, i32 %320, i64 12
  %452 = insertelement <32 x i32> %451, i32 %338, i64 13
  %453 = insertelement <32 x i32> %452, i32 %319, i64 14
  %454 = insertelement <32 x i32> %453, i32 %337, i64 15
  %455 = insertelement <32 x i32> %454, i32 %318, i64 16
  %456 = insertelement <32 x i32> %455, i32 %336, i64 17
  %457 = insertelement <32 x i32> %456, i32 %317, i64 18
  %458 = insertelement <32 x i32> %457, i32 %335, i64 19
  %459 = insertelement <32 x i32> %458, i32 %316, i64 20
  %460 = insertelement <32 x i32> %459, i32 %334, i64 21
  %461 = insertelement <32 x i32> %460, i32 %315, i64 22
  %462 = insertelement <32 x i32> %461, i32 %333, i64 23
  %463 = insertelement <32 x i32> %462, i32 %314, i64 24
  %464 = insertelement <32 x i32> %463, i32 %332, i64 25
  %465 = insertelement <32 x i32> %464, i32 %313, i64 26
  %466 = insertelement <32 x i32> %465, i32 %331, i64 27
  %467 = insertelement <32 x i32> %466, i32 %312, i64 28
  %468 = insertelement <32 x i32> %467, i32 %330, i64 29
  %469 = insertelement <32 x i32> %468, i32 %311, i64 30
  %470 = insertelement <32 x i32> %469, i32 %329, i64 31
  %471 = trunc <32 x i32> %470 to <32 x i16>
  %472 = bitcast <32 x i16> %471 to <32 x half>
  %473 = shufflevector <2 x half> %438, <2 x half> %435, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %474 = shufflevector <2 x half> %432, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %475 = shufflevector <32 x half> %473, <32 x half> %474, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %476 = shufflevector <2 x half> %429, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %477 = shufflevector <32 x half> %475, <32 x half> %476, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %478 = shufflevector <2 x half> %426, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %479 = shufflevector <32 x half> %477, <32 x half> %478, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %480 = shufflevector <2 x half> %423, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %481 = shufflevector <32 x half> %479, <32 x half> %480, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %482 = shufflevector <2 x half> %420, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %483 = shufflevector <32 x half> %481, <32 x half> %482, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %484 = shufflevector <2 x half> %417, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %485 = shufflevector <32 x half> %483, <32 x half> %484, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %486 = shufflevector <2 x half> %414, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %487 = shufflevector <32 x half> %485, <32 x half> %486, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %488 = shufflevector <2 x half> %411, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %489 = shufflevector <32 x half> %487, <32 x half> %488, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %490 = shufflevector <2 x half> %408, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %491 = shufflevector <32 x half> %489, <32 x half> %490, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %492 = shufflevector <2 x half> %405, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %493 = shufflevector <32 x half> %491, <32 x half> %492, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %494 = shufflevector <2 x half> %402, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %495 = shufflevector <32 x half> %493, <32 x half> %494, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %496 = shufflevector <2 x half> %399, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %497 = shufflevector <32 x half> %495, <32 x half> %496, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 32, i32 33, i32 poison, i32 poison, i32 poison, i32 poison>
  %498 = shufflevector <2 x half> %396, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %499 = shufflevector <32 x half> %497, <32 x half> %498, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 32, i32 33, i32 poison, i32 poison>
  %500 = shufflevector <2 x half> %393, <2 x half> poison, <32 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %501 = shufflevector <32 x half> %499, <32 x half> %500, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 32, i32 33>
  %502 = fcmp une <32 x half> %501, %472
  %503 = extractelement <32 x i1> %502, i64 30
  %504 = zext i1 %503 to i32
  %505 = extractelement <32 x i1> %502, i64 31
  %506 = zext i1 %505 to i32
  %507 = extractelement <32 x i1> %502, i64 28
  %508 = zext i1 %507 to i32
  %509 = extractelement <32 x i1> %502, i64 29
  %510 = zext i1 %509 to i32
  %511 = extractelement <32 x i1> %502, i64 26
  %512 = zext i1 %511 to i32
  %513 = extractelement <32 x i1> %502, i64 27
  %514 = zext i1 %513 to i32
  %515 = extractelement <32 x i1> %502, i64 24
  %516 = zext i1 %515 to i32
  %517 = extractelement <32 x i1> %502, i64 25
  %518 = zext i1 %517 to i32
  %519 = extractelement <32 x i1> %502, i64 22
  %520 = zext i1 %519 to i32
  %521 = extractelement <32 x i1> %502, i64 23
  %522 = zext i1 %521 to i32
  %523 = extractelement <32 x i1> %502, i64 20
  %524 = zext i1 %523 to i32
  %525 = extractelement <32 x i1> %502, i64 21
  %526 = zext i1 %525 to i32
  %527 = extractelement <32 x i1> %502, i64 18
  %528 = zext i1 %527 to i32
  %529 = extractelement <32 x i1> %502, i64 19
  %530 = zext i1 %529 to i32
  %531 = extractelement <32 x i1> %502, i64 16
  %532 = zext i1 %531 to i32
  %533 = extractelement <32 x i1> %502, i64 17
  %534 = zext i1 %533 to i32
  %535 = extractelement <32 x i1> %502, i64 14
  %536 = zext i1 %535 to i32
  %537 = extractelement <32 x i1> %502, i64 15
  %538 = zext i1 %537 to i32
  %539 = extractelement <32 x i1> %502, i64 12
  %540 = zext i1 %539 to i32
  %541 = extractelement <32 x i1> %502, i64 13
  %542 = zext i1 %541 to i32
  %543 = extractelement <32 x i1> %502, i64 10
  %544 = zext i1 %543 to i32
  %545 = extractelement <32 x i1> %502, i64 11
  %546 = zext i1 %545 to i32
  %547 = extractelement <32 x i1> %502, i64 8
  %548 = zext i1 %547 to i32
  %549 = extractelement <32 x i1> %502, i64 9
  %550 = zext i1 %549 to i32
  %551 = extractelement <32 x i1> %502, i64 6
  %552 = zext i1 %551 to i32
  %553 = extractelement <32 x i1> %502, i64 7
  %554 = zext i1 %553 to i32
  %555 = extractelement <32 x i1> %502, i64 4
  %556 = zext i1 %555 to i32
  %557 = extractelement <32 x i1> %502, i64 5
  %558 = zext i1 %557 to i32
  %559 = extractelement <32 x i1> %502, i64 2
  %560 = zext i1 %559 to i32
  %561 = extractelement <32 x i1> %502, i64 3
  %562 = zext i1 %561 to i32
  %563 = extractelement <32 x i1> %502, i64 0
  %564 = zext i1 %563 to i32
  %565 = extractelement <32 x i1> %502, i64 1
  %566 = zext i1 %565 to i32
  %567 = getelementptr i8, ptr addrspace(1) %casts, i64 %6
  %568 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %504) #3
  %569 = trunc i16 %568 to i8
  store i8 %569, ptr addrspace(1) %567, align 1
  %570 = getelementptr i8, ptr addrspace(1) %567, i64 1
  %571 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %506) #3
  %572 = trunc i16 %571 to i8
  store i8 %572, ptr addrspace(1) %570, align 1
  %573 = getelementptr i8, ptr addrspace(1) %567, i64 32
  %574 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %508) #3
  %575 = trunc i16 %574 to i8
  store i8 %575, ptr addrspace(1) %573, align 1
  %576 = getelementptr i8, ptr addrspace(1) %567, i64 33
  %577 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %510) #3
  %578 = trunc i16 %577 to i8
  store i8 %578, ptr addrspace(1) %576, align 1
  %579 = getelementptr i8, ptr addrspace(1) %567, i64 256
  %580 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %512) #3
  %581 = trunc i16 %580 to i8
  store i8 %581, ptr addrspace(1) %579, align 1
  %582 = getelementptr i8, ptr addrspace(1) %567, i64 257
  %583 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %514) #3
  %584 = trunc i16 %583 to i8
  store i8 %584, ptr addrspace(1) %582, align 1
  %585 = getelementptr i8, ptr addrspace(1) %567, i64 288
  %586 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %516) #3
  %587 = trunc i16 %586 to i8
  store i8 %587, ptr addrspace(1) %585, align 1
  %588 = getelementptr i8, ptr addrspace(1) %567, i64 289
  %589 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %518) #3
  %590 = trunc i16 %589 to i8
  store i8 %590, ptr addrspace(1) %588, align 1
  %591 = getelementptr i8, ptr addrspace(1) %567, i64 512
  %592 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %520) #3
  %593 = trunc i16 %592 to i8
  store i8 %593, ptr addrspace(1) %591, align 1
  %594 = getelementptr i8, ptr addrspace(1) %567, i64 513
  %595 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %522) #3
  %596 = trunc i16 %595 to i8
  store i8 %596, ptr addrspace(1) %594, align 1
  %597 = getelementptr i8, ptr addrspace(1) %567, i64 544
  %598 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %524) #3
  %599 = trunc i16 %598 to i8
  store i8 %599, ptr addrspace(1) %597, align 1
  %600 = getelementptr i8, ptr addrspace(1) %567, i64 545
  %601 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %526) #3
  %602 = trunc i16 %601 to i8
  store i8 %602, ptr addrspace(1) %600, align 1
  %603 = getelementptr i8, ptr addrspace(1) %567, i64 768
  %604 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %528) #3
  %605 = trunc i16 %604 to i8
  store i8 %605, ptr addrspace(1) %603, align 1
  %606 = getelementptr i8, ptr addrspace(1) %567, i64 769
  %607 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %530) #3
  %608 = trunc i16 %607 to i8
  store i8 %608, ptr addrspace(1) %606, align 1
  %609 = getelementptr i8, ptr addrspace(1) %567, i64 800
  %610 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %532) #3
  %611 = trunc i16 %610 to i8
  store i8 %611, ptr addrspace(1) %609, align 1
  %612 = getelementptr i8, ptr addrspace(1) %567, i64 801
  %613 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %534) #3
  %614 = trunc i16 %613 to i8
  store i8 %614, ptr addrspace(1) %612, align 1
  %615 = getelementptr i8, ptr addrspace(1) %567, i64 1024
  %616 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %536) #3
  %617 = trunc i16 %616 to i8
  store i8 %617, ptr addrspace(1) %615, align 1
  %618 = getelementptr i8, ptr addrspace(1) %567, i64 1025
  %619 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %538) #3
  %620 = trunc i16 %619 to i8
  store i8 %620, ptr addrspace(1) %618, align 1
  %621 = getelementptr i8, ptr addrspace(1) %567, i64 1056
  %622 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %540) #3
  %623 = trunc i16 %622 to i8
  store i8 %623, ptr addrspace(1) %621, align 1
  %624 = getelementptr i8, ptr addrspace(1) %567, i64 1057
  %625 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %542) #3
  %626 = trunc i16 %625 to i8
  store i8 %626, ptr addrspace(1) %624, align 1
  %627 = getelementptr i8, ptr addrspace(1) %567, i64 1280
  %628 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %544) #3
  %629 = trunc i16 %628 to i8
  store i8 %629, ptr addrspace(1) %627, align 1
  %630 = getelementptr i8, ptr addrspace(1) %567, i64 1281
  %631 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %546) #3
  %632 = trunc i16 %631 to i8
  store i8 %632, ptr addrspace(1) %630, align 1
  %633 = getelementptr i8, ptr addrspace(1) %567, i64 1312
  %634 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %548) #3
  %635 = trunc i16 %634 to i8
  store i8 %635, ptr addrspace(1) %633, align 1
  %636 = getelementptr i8, ptr addrspace(1) %567, i64 1313
  %637 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %550) #3
  %638 = trunc i16 %637 to i8
  store i8 %638, ptr addrspace(1) %636, align 1
  %639 = getelementptr i8, ptr addrspace(1) %567, i64 1536
  %640 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %552) #3
  %641 = trunc i16 %640 to i8
  store i8 %641, ptr addrspace(1) %639, align 1
  %642 = getelementptr i8, ptr addrspace(1) %567, i64 1537
  %643 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %554) #3
  %644 = trunc i16 %643 to i8
  store i8 %644, ptr addrspace(1) %642, align 1
  %645 = getelementptr i8, ptr addrspace(1) %567, i64 1568
  %646 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %556) #3
  %647 = trunc i16 %646 to i8
  store i8 %647, ptr addrspace(1) %645, align 1
  %648 = getelementptr i8, ptr addrspace(1) %567, i64 1569
  %649 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %558) #3
  %650 = trunc i16 %649 to i8
  store i8 %650, ptr addrspace(1) %648, align 1
  %651 = getelementptr i8, ptr addrspace(1) %567, i64 1792
  %652 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %560) #3
  %653 = trunc i16 %652 to i8
  store i8 %653, ptr addrspace(1) %651, align 1
  %654 = getelementptr i8, ptr addrspace(1) %567, i64 1793
  %655 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %562) #3
  %656 = trunc i16 %655 to i8
  store i8 %656, ptr addrspace(1) %654, align 1
  %657 = getelementptr i8, ptr addrspace(1) %567, i64 1824
  %658 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %564) #3
  %659 = trunc i16 %658 to i8
  store i8 %659, ptr addrspace(1) %657, align 1
  %660 = getelementptr i8, ptr addrspace(1) %567, i64 1825
  %661 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %566) #3
  %662 = trunc i16 %661 to i8
  store i8 %662, ptr addrspace(1) %660, align 1
  %663 = icmp ne i32 %25, 0
  %.not.not = icmp ne i32 %43, 0
  %.not49.not = icmp ne i32 %61, 0
  %.not50.not = icmp ne i32 %79, 0
  %664 = zext i1 %663 to i32
  %665 = zext i1 %.not.not to i32
  %666 = zext i1 %.not49.not to i32
  %667 = zext i1 %.not50.not to i32
  %668 = getelementptr i8, ptr addrspace(1) %bits, i64 %80
  %669 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %664) #3
  %670 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %665) #3
  %671 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %666) #3
  %672 = tail call i16 asm "{ .reg .b16 high; mov.b32 {$0, high}, $1; }", "=h,r"(i32 range(i32 0, 65536) %667) #3
  %673 = trunc i16 %672 to i8
  %674 = trunc i16 %671 to i8
  %675 = trunc i16 %670 to i8
  %676 = trunc i16 %669 to i8
  %677 = insertelement <4 x i8> poison, i8 %676, i64 0
  %678 = insertelement <4 x i8> %677, i8 %675, i64 1
  %679 = insertelement <4 x i8> %678, i8 %674, i64 2
  %680 = insertelement <4 x i8> %679, i8 %673, i64 3
  store <4 x i8> %680, ptr addrspace(1) %668, align 1
  ret void
}

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #2

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.nvvm.prmt(i32, i32, i32) #2

attributes #0 = { nounwind memory(argmem: readwrite) "nvvm.reqntid"="64,1,1" }
attributes #1 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #3 = { nounwind memory(none) }
