# What `cmake --install` puts where Debian expects it, and `cpack -G DEB` into a package.
set(CPACK_PACKAGE_NAME braid-peft)
set(CMAKE_INSTALL_DOCDIR share/doc/${CPACK_PACKAGE_NAME})
include(GNUInstallDirs)
install(TARGETS braid RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(BRAID_CUDA)
  # The program looks for it beside itself and there.
  install(TARGETS braid_cuda LIBRARY DESTINATION lib/braid)
endif()

# Manual pages and completions are told by the program itself.
set(braid_manual ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${braid_manual}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${braid_manual}
  COMMAND braid man ${braid_manual}/man1
  COMMAND braid completion bash > ${braid_manual}/braid.bash
  COMMAND braid completion zsh > ${braid_manual}/_braid
  COMMAND find ${braid_manual}/man1 -name "*.1" -exec gzip -9n {} +
  COMMAND ${CMAKE_COMMAND} -E touch ${braid_manual}/stamp
  DEPENDS braid VERBATIM)
add_custom_target(braid_manual ALL DEPENDS ${braid_manual}/stamp)
install(DIRECTORY ${braid_manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${braid_manual}/braid.bash RENAME braid DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${braid_manual}/_braid DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN schemas EXCLUDE PATTERN examples EXCLUDE)
install(DIRECTORY docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/braid)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of braid <braid@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Plan, simulate and execute the fine-tuning of many adapters on one frozen backbone")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# Libraries are told by what the program links; CPU ranks are started by mpirun.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_STRIP_FILES ON)
include(CPack)
