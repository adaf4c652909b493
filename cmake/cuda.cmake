# What GPUs need: nvcc and cuBLASLt of CUDA 13. Without them all else is built. With them but without a GPU all is.
set(BRAID_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real CACHE STRING
  "GPUs that libbraid_cuda.so runs on: A100; A40, RTX A6000, RTX 3090; L40S; H100, H200")
set(BRAID_CUDA OFF)
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cublasLt OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  message(STATUS "nothing is built for GPUs: no CUDA toolkit with nvcc and cuBLASLt here")
elseif(BRAID_SANITIZE)
  message(STATUS "nothing is built for GPUs: CUDA's driver and the sanitizers want the same addresses")
else()
  set(BRAID_CUDA ON)
  if(NOT DEFINED CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${BRAID_CUDA_ARCHITECTURES})
  endif()
  if(BRAID_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${BRAID_CCACHE})
  endif()
  enable_language(CUDA)
  # Which CMake 3.25 does not know of nvcc.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# The device of GPUs: a library that the program loads when it is asked for one (kernels/cuda_device.cpp), which takes
# what it needs of the other folders from the program, and hides its own: tests have kernels of these names, too.
function(braid_cuda_library)
  if(NOT BRAID_CUDA)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)
  find_path(BRAID_NCCL nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT BRAID_NCCL)
    message(STATUS "plans of several GPUs are not run by what is built here: no nccl.h")
    list(FILTER sources EXCLUDE REGEX "/gpu_group\\.cu$")
  else()
    list(FILTER sources EXCLUDE REGEX "/gpu_no_group\\.cu$")
  endif()
  add_library(braid_cuda MODULE ${sources})
  target_include_directories(braid_cuda PRIVATE ${PROJECT_SOURCE_DIR} $<$<BOOL:${BRAID_NCCL}>:${BRAID_NCCL}>)
  # fmt 9 takes nvcc for a compiler without constexpr. A kernel whose registers spill does not build for H100 and H200; on
  # other GPUs, which have other registers to give, that is a warning.
  set(spills -Xptxas=--warn-on-spills)
  if(BRAID_CUDA_ARCHITECTURES STREQUAL "90a-real")
    string(APPEND spills ",-Werror")
  endif()
  target_compile_options(braid_cuda PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-DFMT_USE_CONSTEXPR=1;--expt-relaxed-constexpr;${spills};-Xcompiler=-fPIC,-fvisibility=hidden>")
  target_link_libraries(braid_cuda PRIVATE CUDA::cudart_static CUDA::cublasLt)
  set_target_properties(braid_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CUDA_ARCHITECTURES
    "${BRAID_CUDA_ARCHITECTURES}" BUILD_RPATH "$ORIGIN;/usr/local/cuda/lib64" INSTALL_RPATH "$ORIGIN;/usr/local/cuda/lib64")
endfunction()
