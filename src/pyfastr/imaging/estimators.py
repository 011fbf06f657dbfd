"""Regression and classification of brain images."""

from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score

from pyfastr.estimators import FasTRClassifierCV, FasTRRegressorCV
from pyfastr.estimators.regressor import score_numbers
from pyfastr.imaging.model import NiftiModel

Array = NDArray[Any]


class NiftiRegressor(RegressorMixin, NiftiModel):
    r"""Sparse tensor regression of brain images on a real-valued response.

    .. math:: y_i = \langle W, X_i\rangle + z_i^T c + b + \text{noise}

    with :math:`X_i` the image of a subject inside the mask, :math:`z_i` the confounds, and W a
    sum of few outer products of sparse vectors along the axes of the image.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is fitted to the arrays: any regressor of pyfastr. None is
        :class:`pyfastr.FasTRRegressorCV` as it is by default.
    mask_img : image, path, nilearn masker or None, default=None
        The mask; None computes one. This and all that follow are as in
        :class:`NiftiTransformer`.
    mask_strategy : str, default="background"
        How to compute a mask.
    target_affine : float, array-like of shape (3,), (3, 3) or (4, 4), or None, default=None
        Voxel size or affine to resample all images to.
    target_shape : sequence of 3 int or None, default=None
        Shape of the resampled images.
    smoothing_fwhm : float, sequence of 3 floats, "fast" or None, default=None
        Width of a Gaussian filter in millimetres.
    dtype : {"auto", float32, float64}, default="auto"
        Type of the arrays.
    verbose : int, default=0
        1 draws a bar while images are read and the estimator is fitted, where a person watches;
        2 prints lines.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone of `estimator`, with all attributes of its own.
    transformer_ : NiftiTransformer
        Turns images to the arrays that `estimator_` knows.
    mean_img_ : image
        Mean of the training images inside the mask.
    mask_img_ : image
    n_elements_ : int
        Number of voxels in the mask.
    coef_img_ : image
        The coefficient on the grid of the images, or on the one that they are resampled to: equal
        to `coef_` inside the mask, of the same type, and zero outside. Of several outputs a 4-D
        image with a volume for each.
    coef_ : ndarray of shape (i, j, k)
        The coefficient on the box around the mask. As an outer product it goes on outside the
        mask, where the arrays are zero.
    factors_ : list of 3 ndarrays of shape (p_m, n_terms)
        Components along each axis of the box.
    scales_ : ndarray of shape (n_terms,)
    intercept_ : float
    mode_names_in_ : tuple of 3 str
        What the axes are: "x (mm)", "y (mm)", "z (mm)".
    mode_coords_in_ : list of 3 ndarrays of shape (p_m,)
        Millimetres along each axis, for the rows of `factors_`.

    See Also
    --------
    NiftiTransformer : The arrays alone.

    Notes
    -----
    To scale voxels, use ``make_pipeline(NiftiTransformer(...), TensorScaler(), FasTRRegressor())``:
    in `cross_val_score` or `GridSearchCV` each fold then learns its own scale.

    Examples
    --------
    >>> import tempfile
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_nifti_study
    >>> from pyfastr.imaging import NiftiRegressor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = make_nifti_study(folder, random_state=0)
    ...     model = NiftiRegressor(FasTRRegressor(ridge=0.1, random_state=0), mask_img=study.mask)
    ...     model = model.fit(study.images, study.scores, confounds=study.ages)
    >>> model.coef_img_.shape
    (12, 14, 10)
    >>> model.mode_names_in_
    ('x (mm)', 'y (mm)', 'z (mm)')
    """

    _default: ClassVar[type[Any]] = FasTRRegressorCV

    def fit(
        self,
        imgs: Any,
        y: Any,
        confounds: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> "NiftiRegressor":
        """Read the images and fit the coefficient.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
            One 4-D image holds a sample in each volume.
        y : array-like of shape (n_samples,)
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
            Columns with an ordinary, unpenalised coefficient each (age, site, motion, ...): the
            covariates of the estimator, which are fitted anew in each of its folds. A path is of
            a .csv or .tsv table with a header.
        groups : array-like of shape (n_samples,), optional
            Samples of a group stay together in the folds of a cross-validated estimator.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        NiftiRegressor
            The fitted estimator itself.
        """
        self._fit(imgs, y, covariates=confounds, groups=groups, sample_weight=sample_weight)
        return self

    def predict(self, imgs: Any, confounds: Any = None) -> Array:
        """Predict the response.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ask("predict", imgs, confounds)

    def score(self, imgs: Any, y: Any, confounds: Any = None, sample_weight: Any = None) -> float:
        """Return R² of the prediction, or D² of counts.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        y : array-like of shape (n_samples,)
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        prediction = self.predict(imgs, confounds)
        loss = getattr(self.estimator_, "loss", "squared")
        return score_numbers(loss, y, prediction, sample_weight)


class NiftiClassifier(ClassifierMixin, NiftiModel):
    r"""Sparse tensor classification of brain images.

    The decision is :math:`f(X) = \langle W, X\rangle + z^T c + b`, as in :class:`NiftiRegressor`.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is fitted to the arrays: any classifier of pyfastr. None is
        :class:`pyfastr.FasTRClassifierCV` as it is by default.
    mask_img, mask_strategy, target_affine, target_shape, smoothing_fwhm, dtype, verbose
        As in :class:`NiftiRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_, transformer_, mean_img_, mask_img_, n_elements_
        As in :class:`NiftiRegressor`.
    coef_img_, coef_, factors_, scales_, intercept_, mode_names_in_, mode_coords_in_
        As in :class:`NiftiRegressor`; images with more of the coefficient are of `classes_[1]`.
        More than two classes have a coefficient each, against the rest.

    Examples
    --------
    >>> import tempfile
    >>> from pyfastr import FasTRClassifier
    >>> from pyfastr.datasets import make_nifti_study
    >>> from pyfastr.imaging import NiftiClassifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = make_nifti_study(folder, random_state=0)
    ...     model = NiftiClassifier(FasTRClassifier(random_state=0), mask_img=study.mask)
    ...     model = model.fit(study.images, study.groups)
    >>> model.classes_.tolist()
    ['control', 'patient']
    """

    _default: ClassVar[type[Any]] = FasTRClassifierCV

    def fit(
        self,
        imgs: Any,
        y: Any,
        confounds: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> "NiftiClassifier":
        """Read the images and fit the coefficient.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        y : array-like of shape (n_samples,)
            Two classes or more, labelled in any way.
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
        groups : array-like of shape (n_samples,), optional
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        NiftiClassifier
            The fitted estimator itself.
        """
        self._fit(imgs, y, covariates=confounds, groups=groups, sample_weight=sample_weight)
        return self

    def predict(self, imgs: Any, confounds: Any = None) -> Array:
        """Predict the class.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ask("predict", imgs, confounds)

    def decision_function(self, imgs: Any, confounds: Any = None) -> Array:
        """Return the decision values, above 0 for `classes_[1]`.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ask("decision_function", imgs, confounds)

    def predict_proba(self, imgs: Any, confounds: Any = None) -> Array:
        """Predict the probabilities of all classes.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", imgs, confounds)

    def score(self, imgs: Any, y: Any, confounds: Any = None, sample_weight: Any = None) -> float:
        """Return the share of images whose class is predicted.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
        y : array-like of shape (n_samples,)
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        return float(accuracy_score(y, self.predict(imgs, confounds), sample_weight=sample_weight))

    @property
    def classes_(self) -> Array:
        return self.estimator_.classes_
