// Open MPI as a contender (contender.h says what that is). It chooses the algorithm itself, so
// there is one mode, "default"; its environment says which transport it uses (compare.py: TCP).
//
// One thread. MPI's errors end the process.
#ifndef OPTIREDUCE_TEST_LAB_CONTENDER_OPENMPI_H_
#define OPTIREDUCE_TEST_LAB_CONTENDER_OPENMPI_H_

#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

struct Contender {
  Contender(int rank, int ranks, const char* /*mode*/, const float* in_in, float* out_in,
            std::size_t count_in)
      : in(in_in), out(out_in), count(static_cast<int>(count_in)) {
    MPI_Init(nullptr, nullptr);
    int mpi_rank = -1;
    int mpi_ranks = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_ranks);
    if (mpi_rank != rank || mpi_ranks != ranks) {
      std::fputs("openmpi: mpirun's variables and MPI disagree about the rank\n", stderr);
      std::exit(1);
    }
  }
  ~Contender() { MPI_Finalize(); }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  void AllReduce() { MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

  const float* const in;
  float* const out;
  const int count;
};

#endif  // OPTIREDUCE_TEST_LAB_CONTENDER_OPENMPI_H_
